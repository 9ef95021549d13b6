"""Make one store of several PostgreSQL instances, move namespaces between them, and see how they are."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import click

from rlm.core.errors import InvalidInput
from rlm.core.files import hidden_password, server_url
from rlm.core.settings import load_settings
from rlm.service.cli.common import Group, example, json_option, print_json, print_table
from rlm.store.postgres.cluster import Catalogue, add_instance, cluster_status, init_cluster, move_namespace


@click.group("cluster", cls=Group)
def cluster_group() -> None:
    "Make one store of several PostgreSQL instances, and move namespaces."


def _read_instances(given: Sequence[str]) -> dict[str, str]:
    "Read instances, each written NAME=ADDRESS. Raises `InvalidInput`."
    found = dict[str, str]()
    for text in given:
        name, mark, address = text.partition("=")
        url = server_url(address) if mark else None
        if url is None or name in found:
            raise InvalidInput(f"{hidden_password(text)[:80]!r} is no instance.", "Write each as NAME=postgresql://HOST/DATABASE, once.")
        found[name] = url
    return found


db_option = click.option("--db", type=click.Path(path_type=Path), help="An instance that answers; default: the setting db_path.")


def _cluster_address(db: Path | None) -> str:
    "Return the address of the instance by which a command comes to the cluster. Raises `InvalidInput`."
    path = load_settings(db_path=db).db_path
    if (url := server_url(path)) is None:
        raise InvalidInput(f"The store {str(path)!r} is a file.", "Name an instance: --db postgresql://HOST/DATABASE")
    return url


def _show_catalogue(found: Catalogue, as_json: bool) -> None:
    "Print which instances a cluster has, and what is not where hashing puts it."
    rows = [(i.name, i.address) for i in found.instances]
    if as_json:
        return print_json({"version": found.version, "instances": dict(rows), "places": dict(found.places)})
    print_table(rows, ["instance", "address"])
    if found.places:
        click.echo(f"{len(found.places)} namespaces are not where they belong by their hash: `rlm cluster move --all` moves them.")


@cluster_group.command(epilog=example("rlm cluster init a=postgresql://rlm@db1/memories b=postgresql://rlm@db2/memories"))
@click.argument("instances", nargs=-1, required=True)
@json_option
def init(instances: tuple[str, ...], as_json: bool) -> None:
    "Make a cluster of INSTANCES, each written NAME=ADDRESS; the first may hold memories already. Tables are made where there are none."
    _show_catalogue(init_cluster(_read_instances(instances)), as_json)


@cluster_group.command(epilog=example("rlm cluster add c=postgresql://rlm@db3/memories"))
@click.argument("instance")
@db_option
@json_option
def add(db: Path | None, instance: str, as_json: bool) -> None:
    "Add an empty INSTANCE, written NAME=ADDRESS. Namespaces stay where they are until they are moved."
    [(name, address)] = _read_instances([instance]).items()
    _show_catalogue(add_instance(_cluster_address(db), name, address), as_json)


@cluster_group.command(epilog=example("rlm cluster move agent-7 --to b", "rlm cluster move --all"))
@click.argument("namespaces", nargs=-1)
@click.option("--to", help="Name of the instance. Default: the one that its hash says.")
@click.option("--all", "every", is_flag=True, help="Move every namespace that is not where its hash says.")
@db_option
@json_option
def move(db: Path | None, namespaces: tuple[str, ...], to: str | None, every: bool, as_json: bool) -> None:
    "Move NAMESPACES while they are read and written; writers wait while the rows are copied, and no write is lost."
    url = _cluster_address(db)
    if bool(namespaces) == every or (every and to):
        raise InvalidInput("Say which namespaces to move.", "Name them, or give --all without --to.")
    names = [n for status in cluster_status(url) for n in status.away] if every else list(namespaces)
    moved = [found for name in names if (found := move_namespace(url, name, to)) is not None]
    if as_json:
        print_json([asdict(m) for m in moved])
    else:
        for m in moved:
            click.echo(f"{m.namespace}: {m.rows:,} rows from {m.source} to {m.target}; its writers waited {m.waited_s:.1f} s.")
        click.echo(f"{len(moved)} moved, {len(names) - len(moved)} were there already.")


@cluster_group.command(epilog=example("rlm cluster status", "rlm cluster status --json"))
@db_option
@json_option
def status(db: Path | None, as_json: bool) -> None:
    "Show each instance: whether it answers, its memories and namespaces, those that belong elsewhere. Exit code 1 if one is down."
    found = cluster_status(_cluster_address(db))
    if as_json:
        print_json([asdict(s) for s in found])
    else:
        rows = [(s.name, s.address, "answers" if s.answers else "down", s.version or "", s.memories, len(s.namespaces), len(s.away))
                for s in found]
        print_table(rows, ["instance", "address", "", "catalogue", "memories", "namespaces", "misplaced"])
    if not all(s.answers for s in found):
        raise click.exceptions.Exit(1)
