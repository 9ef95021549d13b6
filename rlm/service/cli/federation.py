"""Learn with others: make a federation or join one, see what was exchanged and what it cost, take part, leave."""

import time
from dataclasses import asdict, replace
from typing import Any

import click

from rlm.core.errors import InvalidInput
from rlm.service.cli.common import Group, example, options, print_json, print_table, with_memory
from rlm.service.memory import Memory


CARD = "family/" + "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a" + "@http://127.0.0.1:8792"  # the examples' card


@click.group("federation", cls=Group)
def federation_group() -> None:
    "Learn what to save together with others; no memory leaves the store."


address_options = options(
    click.option("--host", help="Address to listen on. Default: 127.0.0.1, this machine alone."),
    click.option("--port", type=int, help="Port to listen on; 0: any free one. Default: 8791."),
    click.option("--url", help="Address at which others find this peer. Default: http://HOST:PORT."),
    click.option("--shape", type=click.Choice(["linear", "network"]),
                 help="What is shared: 33 numbers (default), or the network's 899 parameters. The same for all peers."))


@federation_group.command(epilog=example("rlm federation init family",
                                              "rlm federation init family --port 8792 --budget 2 --rule median --json"))
@click.argument("name")
@address_options
@click.option("--budget", type=float, help="ε of all rounds at most; then this peer only receives. Default: 1.")
@click.option("--noise", type=float, help="Standard deviation of the noise, in clips. Default: 13, for ten rounds within ε 1.")
@click.option("--round", "round_s", type=float, help="Seconds between two updates of one's own. Default: 86400, a day.")
@click.option("--interval", "interval_s", type=float, help="Seconds between two exchanges. Default: 60.")
@click.option("--rule", help="multi-krum (default), krum, median, centred-clipping or mean.")
@click.option("--attackers", type=int, help="Liars that are allowed for; it takes 2f + 3 updates. Default: 1.")
@with_memory(makes=True)
def init(memory: Memory, name: str, url: str | None, as_json: bool, **given: Any) -> None:
    "Make a key and a federation NAME. Nothing is sent before `rlm federation run`."
    from rlm.federation.gossip import read_config
    from rlm.service.federation import FederationFolder
    config = read_config({n: v for n, v in given.items() if v is not None})
    folder = FederationFolder.of(memory)
    folder.create(name, config, url)
    _show_card(folder.card(), as_json)


def _show_card(card: object, as_json: bool) -> None:
    print_json({"card": str(card)}) if as_json else click.echo(str(card))


@federation_group.command(epilog=example("rlm federation invite", "rlm federation invite --json"))
@with_memory()
def invite(memory: Memory, as_json: bool) -> None:
    "Print this peer's card. Give it to others by hand; each side joins the card of the other."
    from rlm.service.federation import FederationFolder
    _show_card(FederationFolder.of(memory).card(), as_json)


@federation_group.command(epilog=example(f"rlm federation join {CARD}"))
@click.argument("card")
@address_options
@click.option("--allow-rules", metavar="HASH", help="Also take updates of peers with other safety rules, by their SHA-256.")
@with_memory(makes=True)
def join(memory: Memory, card: str, url: str | None, allow_rules: str | None, as_json: bool, **given: Any) -> None:
    "Add the peer of CARD, and print one's own card for it. Without a federation here, its federation is joined."
    from rlm.federation.gossip import read_card, read_config
    from rlm.service.federation import FederationFolder
    folder, theirs, chosen = FederationFolder.of(memory), read_card(card), {n: v for n, v in given.items() if v is not None}
    if not folder.exists:
        folder.create(theirs.federation, read_config(chosen), url)
    elif chosen or url is not None:
        raise InvalidInput("There is a federation here, with an address.",
                           "Leave out --host, --port, --url and --shape, or leave it first.")
    folder.add(theirs, allow_rules)
    _show_card(folder.card(), as_json)


@federation_group.command(epilog=example("rlm federation status", "rlm federation status --json"))
@with_memory()
def status(memory: Memory, as_json: bool) -> None:
    "Show peers, what came from them, ε spent, and whether a shared model is in use."
    from rlm.service.federation import FederationFolder, status_of
    found = status_of(FederationFolder.of(memory), memory.companion)
    if as_json:
        return print_json(found)
    peers = found.pop("peers")
    print_table([[k.replace("_", " "), v] for k, v in found.items()], ["", ""])
    click.echo()
    print_table([[p["key"][:12] + "…", p["url"], p["updates"], p["unanswered"], f"{p['reputation']:.2f}"] for p in peers],
                ["peer", "address", "updates", "unanswered", "reputation"])


@federation_group.command(epilog=example("rlm federation leave", "rlm federation leave --json"))
@with_memory()
def leave(memory: Memory, as_json: bool) -> None:
    "Decide by one's own policy alone again, exactly, and know no peers. Key and ε spent are kept: what was sent stays sent."
    from rlm.service.federation import FederationFolder
    folder = FederationFolder.of(memory)
    folder.leave()
    dropped = memory.companion.policies.drop_shared()
    line = "A shared model was dropped; one's own policy decides." if dropped else "There was no shared model; one's own policy decides."
    print_json({"dropped": dropped}) if as_json else click.echo(line)


@federation_group.command(epilog=example("rlm federation run --steps 1 --port 0", "rlm federation run --steps 1 --port 0 --json"))
@click.option("--steps", type=click.IntRange(1), help="Exchanges, then it ends. Default: until Ctrl-C.")
@click.option("--port", type=int, help="Port to listen on, this time; 0: any free one.")
@with_memory()
def run(memory: Memory, steps: int | None, port: int | None, as_json: bool) -> None:
    "Take part: listen, publish an update when it is time, exchange with random peers, adopt what is good. Ctrl-C ends it."
    from rlm.service.federation import FederationFolder, GossipServer, http_send, running_node
    folder = FederationFolder.of(memory)
    node = running_node(folder, memory.companion)
    if port is not None:
        node.config = replace(node.config, port=port)
    server, send, done = GossipServer(node), http_send(node.config.timeout_s), 0
    server.start()
    click.echo(f"Listening on {node.config.host}:{server.port}, with {len(node.peers)} {'peer' if len(node.peers) == 1 else 'peers'}; "
               f"an exchange every {node.config.interval_s:g} s.", err=True)
    try:
        while True:
            node.set_peers(folder.peers())
            report = node.step(send)
            print_json(asdict(report)) if as_json else click.echo(f"{memory.ctx.clock.now():%H:%M:%S} {report}")
            while node.refusals and not as_json:
                click.echo(f"  refused: {node.refusals.popleft()}", err=True)
            done += 1
            if steps is not None and done >= steps:
                break
            time.sleep(node.config.interval_s)
    except KeyboardInterrupt:
        click.echo("Ended.", err=True)
    finally:
        server.stop()
