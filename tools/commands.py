"""Write the reference of the command line from the commands themselves: the help of each, group by group."""
import click

WIDTH = 84  # characters of a line of help: as many as a page of the site shows on a laptop


def command_reference() -> str:  # Markdown
    "Return the help of every command of `rlm` and `rlm-agent`."
    from rlm.service.cli.agent import main as agent
    from rlm.service.cli.main import main as memory
    lines = ["# Commands", "", "What `--help` says, for every command.", ""]

    def write(command: click.Command, name: str, parent: click.Context | None, depth: int) -> None:
        context = click.Context(command, info_name=name, parent=parent, terminal_width=WIDTH, max_content_width=WIDTH)
        lines.extend([f"{'#' * depth} {context.command_path}", "", "```text", command.get_help(context).strip(), "```", ""])
        if isinstance(command, click.Group):
            for each in command.list_commands(context):
                if (sub := command.get_command(context, each)) is not None and not sub.hidden:
                    write(sub, each, context, min(4, depth + 1))

    for name, command in (("rlm", memory), ("rlm-agent", agent)):
        write(command, name, None, 2)
    return "\n".join(lines)
