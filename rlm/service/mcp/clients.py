"""The configuration files of the programs that use an MCP server, and how one more server is put into them.

Each is a JSON file with an object of servers. What is there stays as it is; a file that cannot be read as JSON, such as one with
comments, is not touched.
"""

import json
import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlm.core.errors import InvalidInput, NotFound, StoreError
from rlm.core.files import replace_file

CLIENTS = ("claude-desktop", "claude-code", "cursor", "vscode")
SERVERS_KEY = {"vscode": "servers"}  # client → name of its object of servers; all others call it mcpServers
TYPED = ("claude-code", "vscode")  # clients whose entries name the transport


def desktop_folder(platform: str,               # `sys.platform`
                   home: Path,                  # the user's home
                   environment: Mapping[str, str],  # variables of the process
                   ) -> Path:
    "Return the folder in which Claude Desktop keeps its configuration."
    if platform == "darwin":
        return home / "Library" / "Application Support" / "Claude"
    if platform == "win32":
        return Path(environment.get("APPDATA") or home / "AppData" / "Roaming") / "Claude"
    return Path(environment.get("XDG_CONFIG_HOME") or home / ".config") / "Claude"


def config_path(client: str,               # one of `CLIENTS`
                folder: Path,              # project's folder, for clients that are configured by project
                platform: str = sys.platform,  # platform in Python's words
                home: Path | None = None,  # None: the user's
                environment: Mapping[str, str] = os.environ,  # variables of the process
                ) -> Path:
    "Return the file in which a client looks for its servers. Raises `InvalidInput` for a client that is not known."
    home = home or Path.home()
    places = {"claude-desktop": desktop_folder(platform, home, environment) / "claude_desktop_config.json",
              "claude-code": folder / ".mcp.json", "cursor": home / ".cursor" / "mcp.json", "vscode": folder / ".vscode" / "mcp.json"}
    if client not in places:
        raise InvalidInput(f"The client {client!r} is not known.", f"Known: {', '.join(CLIENTS)}.")
    return places[client]


def program() -> str:
    "Return the full path of `rlm`: a client starts it from another folder, with a search path of its own. Raises `NotFound`."
    beside = Path(sys.executable).with_name("rlm.exe" if sys.platform == "win32" else "rlm")
    found = str(beside) if beside.exists() else shutil.which("rlm")
    if found is None:
        raise NotFound(f"There is no program `rlm` beside {sys.executable}.", "Install the package: pip install 'rlm[mcp]'")
    return found


@dataclass(frozen=True)
class ServerEntry:
    "How a client starts the server."

    name: str  # name under which the client shows it
    command: str  # full path of the program
    args: tuple[str, ...]  # its arguments

    def as_dict(self,
                client: str,  # one of `CLIENTS`
                ) -> dict[str, Any]:
        "Return the entry as this client has it."
        return ({"type": "stdio"} if client in TYPED else {}) | {"command": self.command, "args": list(self.args)}


def server_entry(name: str,               # name under which the client shows it
                 path: Path,              # the store's file
                 namespace: str | None,   # the partition; None: the setting
                 more: Sequence[str] = (),  # further arguments
                 ) -> ServerEntry:
    "Return the entry that serves a store. Every path in it is a full one."
    inside = ("-n", namespace) if namespace is not None else ()
    return ServerEntry(name, program(), ("mcp", "--db", str(path.absolute()), *inside, *more))


def read_config(path: Path,  # a client's file
                ) -> dict[str, Any]:  # empty if it is not there
    "Return what stands in a client's configuration. Raises `InvalidInput` for a file that is not a JSON object, and leaves it."
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as e:
        raise StoreError(f"{str(path)!r} can't be read ({e}).", "Check the path, and what you may do there.") from None
    try:
        found = json.loads(text) if text.strip() else {}
    except ValueError as e:
        raise InvalidInput(f"{str(path)!r} is not plain JSON ({e}).",
                           "It was not changed. Leave out --write, and paste what is printed where its servers stand.") from None
    if not isinstance(found, dict):
        raise InvalidInput(f"{str(path)!r} holds no JSON object.", "It was not changed. Mend it first.")
    return found


def merged(config: Mapping[str, Any],  # contents of a client's file
           client: str,                # one of `CLIENTS`
           entry: ServerEntry,         # server to put into it
           ) -> dict[str, Any]:
    "Return a configuration with the server in it; everything else is as it was. Raises `InvalidInput`."
    key = SERVERS_KEY.get(client, "mcpServers")
    servers = config.get(key, {})
    if not isinstance(servers, dict):
        raise InvalidInput(f"The {key} of this file are no JSON object.", "It was not changed. Mend it first.")
    kept = servers.get(entry.name)
    own = (kept if isinstance(kept, dict) else {}) | entry.as_dict(client)  # an env that somebody added stays
    return {**config, key: {**servers, entry.name: own}}


def write_config(path: Path,  # a client's file
                 config: Mapping[str, Any],  # contents it shall have
                 ) -> Path | None:  # the copy of what it held; None: it was not there, or would not change
    "Write a client's configuration whole, and keep a copy of the one before. Raises `StoreError`."
    text = json.dumps(config, ensure_ascii=False, indent=2)
    if path.exists() and read_config(path) == config:
        return None
    backup = None
    if path.exists():
        backup = next(b for n in range(1, 10_000) if not (b := path.with_name(f"{path.name}.backup-{n}")).exists())
        shutil.copy2(path, backup)
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, [text])
    return backup
