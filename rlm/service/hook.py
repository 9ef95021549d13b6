"""Memory for Claude Code without a tool call: what a hook of it is given on standard input, and what it answers.

This is a client of `rlm serve` in the standard library alone, since a hook is a process for each event and a person waits for it. Where
no server answers, `hook_alone` reads the store by words, and another process writes. Whatever fails, the hook ends with 0 and says
nothing: the reason is a line of its log, which `rlm hook status` shows. The log never holds a text.

| event | what happens |
|---|---|
| `SessionStart` | pinned memories, and what mentions the name of the folder, go into the context |
| `UserPromptSubmit` | what answers the prompt goes into the context; then what the prompt states is kept, if it states anything |
| `Stop` | the answer is stored, as a turn of a conversation |
| `PreCompact` | what was said so far may be recalled in this session again, as it leaves the model's context |
"""

import argparse
import json
import os
import re
import socket
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any

URL = "http://127.0.0.1:8377"  # where `rlm serve` listens by default
HOME = os.path.join("~", ".rlm")  # folder of the log
TOKENS = 1024  # what a block may cost
LEAST = 0.03  # relevance of a memory that is worth a line; below it stood what had nothing to do with ordinary prompts
MOST_ASKED = 2_000  # characters of a prompt that are searched for
MOST_STORED = 20_000  # characters of a turn that are stored
REACH_S, ANSWER_S = 0.25, 3.0  # seconds to reach a server on this machine, and until its answer is there whole
ANSWER_BYTES = 4_000_000  # size of an answer that is read
ADDRESS = re.compile(r"(https?)://(\[[0-9a-fA-F:.]+\]|[^\s:/?#@\[\]]+)(?::(\d{1,5}))?/*")  # scheme, host, port
HERE = ("localhost", "127.0.0.1", "::1")  # hosts to which a token may go unencrypted
LOG_BYTES = 200_000  # size at which the older half of the log is dropped
SESSIONS = 200  # sessions whose parts are kept
EVENTS = ("SessionStart", "UserPromptSubmit", "Stop", "PreCompact")
COMMAND = re.compile(r"/[\w:.-]+(\s|$)")  # a command of Claude Code such as `/clear`: no words of a person


class HookFailure(Exception):
    "A reason why an event came to nothing; it stands in the log."


class ServerAway(Exception):
    "No server listens at the address."


def read_options(words: Sequence[str] | None = None,  # arguments; None: those of the process
                 ) -> argparse.Namespace:
    "Return the options of the hook, as `rlm hook install` writes them."
    parser = argparse.ArgumentParser("rlm hook", add_help=False)
    parser.add_argument("--url", default=URL)
    parser.add_argument("--secret")
    parser.add_argument("--db")
    parser.add_argument("-n", "--namespace")
    parser.add_argument("--config")
    parser.add_argument("--tokens", type=int, default=TOKENS)
    parser.add_argument("--no-capture", action="store_true")
    parser.add_argument("--log", default=os.path.join(HOME, "hook.log"))
    return parser.parse_args(words)


def _request_bytes(method: str, path: str, host: str, body: Mapping[str, Any], headers: Mapping[str, str]) -> bytes:
    "Return a request of HTTP/1.0: the answer is whole when the connection closes."
    sent = json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")
    lines = [f"{method} {path} HTTP/1.0", f"Host: {host}", "Content-Type: application/json", f"Content-Length: {len(sent)}",
             *(f"{name}: {value}" for name, value in headers.items())]
    if any("\r" in line or "\n" in line for line in lines):
        raise HookFailure("a header holds a line break")
    return ("\r\n".join(lines) + "\r\n\r\n").encode() + sent


def answer_of(raw: bytes,  # everything that the server sent
              ) -> Any:
    "Return the JSON of an answer. Raises `HookFailure` for an error, by its status and title alone."
    head, mark, body = raw.partition(b"\r\n\r\n")
    status = head[:40].split()[1:2]
    if not mark or not status or not status[0].isdigit():
        raise HookFailure("what listens there does not speak HTTP")
    try:
        found = json.loads(body)
    except ValueError:
        raise HookFailure(f"the server answered {status[0].decode()} without JSON") from None
    if status[0][:1] != b"2":
        title = found.get("title", "") if isinstance(found, dict) else ""
        raise HookFailure(f"the server answered {status[0].decode()} {title}".strip())
    return found


class HookServer:
    "`rlm serve`, as the hook calls it."

    def __init__(self,
                 url: str,              # its address
                 namespace: str | None = None,  # the partition; None: the token's first
                 secret: str | None = None,     # a file with a token of `rlm tokens add`; None: none is needed
                 ) -> None:
        found = ADDRESS.fullmatch(url)
        if not found or int(found[3] or 0) > 65_535:
            raise HookFailure(f"{url!r} is not the address of a server, such as {URL}")
        self.tls, self.host = found[1] == "https", found[2] + (f":{found[3]}" if found[3] else "")
        self.place = found[2].strip("[]"), int(found[3] or (443 if self.tls else 80))
        self.headers = {"Rlm-Namespace": namespace} if namespace else {}
        if secret:
            if not self.tls and self.place[0] not in HERE:
                raise HookFailure(f"the token would go to {self.place[0]} unencrypted")
            with open(os.path.expanduser(secret), encoding="utf-8") as file:
                self.headers["Authorization"] = f"Bearer {file.read().strip()}"

    def ask(self,
            path: str,                # path on the server
            body: Mapping[str, Any],  # JSON to send
            ) -> Any:
        "Send a request and return the answer, which must be there within `ANSWER_S`. Raises `ServerAway`, `HookFailure`."
        until = time.monotonic() + ANSWER_S
        try:
            link = socket.create_connection(self.place, REACH_S)
        except OSError as e:
            raise ServerAway(str(e)) from None
        with link:
            link.settimeout(ANSWER_S)
            if self.tls:
                import ssl
                link = ssl.create_default_context().wrap_socket(link, server_hostname=self.place[0])
            parts = bytearray()
            try:
                link.sendall(_request_bytes("POST", path, self.host, body, self.headers))
                while len(parts) <= ANSWER_BYTES and (left := until - time.monotonic()) > 0:
                    link.settimeout(left)
                    if not (part := link.recv(65_536)):
                        return answer_of(bytes(parts))
                    parts += part
            except TimeoutError:
                pass
        raise HookFailure(f"the server gave no whole answer of at most {ANSWER_BYTES:,} bytes within {ANSWER_S:g} s")


def _session_parts(log: str) -> dict[str, int]:
    "Return how often each known session has been compacted."
    try:
        with open(f"{log}.sessions", encoding="utf-8") as file:
            found = json.load(file)
    except (FileNotFoundError, ValueError):
        return {}
    return {str(k): v for k, v in found.items() if isinstance(v, int)} if isinstance(found, dict) else {}


def _count_part(log: str, session: str) -> None:
    "Note that a session is compacted: its next turns are stored under another name."
    parts = _session_parts(log)
    parts[session] = parts.pop(session, 1) + 1
    temporary = f"{log}.sessions.{os.getpid()}"
    with open(temporary, "w", encoding="utf-8") as file:
        json.dump(dict(list(parts.items())[-SESSIONS:]), file)
    os.replace(temporary, f"{log}.sessions")


def session_id(event: Mapping[str, Any],  # event that Claude Code sent
               ) -> str:
    "Return the id of its session, letters, digits and hyphens alone."
    return re.sub(r"[^\w-]", "", str(event.get("session_id", "")))[:64] or "unknown"


def _session_name(log: str, event: Mapping[str, Any]) -> str:
    "Return the name under which the turns of a session are stored; it changes when the session is compacted."
    id = session_id(event)
    part = _session_parts(log).get(id, 1)
    return f"claude-code-{id}" + (f"-{part}" if part > 1 else "")


def last_answer(event: Mapping[str, Any],  # event `Stop`
                ) -> str:
    "Return what the model said last: the event tells it, or, of earlier programs, the end of the transcript."
    if isinstance(said := event.get("last_assistant_message"), str):
        return said
    path = event.get("transcript_path")
    if not isinstance(path, str) or not os.path.isfile(path):
        return ""
    with open(path, "rb") as file:
        file.seek(max(0, os.path.getsize(path) - 1_000_000))
        lines = file.read().splitlines()
    for line in reversed(lines):
        try:
            found = json.loads(line)
            if found["type"] == "assistant" and not found.get("isSidechain"):
                content = found["message"]["content"]
                text = content if isinstance(content, str) else "\n".join(c["text"] for c in content if c.get("type") == "text")
                if text.strip():
                    return text
        except (ValueError, KeyError, TypeError, AttributeError):
            continue  # a line of another kind, or the first one, cut
    return ""


def _turn_of(event: Mapping[str, Any]) -> dict[str, Any] | None:
    "Return the turn that an event tells of; None: it tells of none that is worth keeping."
    kind = event.get("hook_event_name")
    said = event.get("prompt") if kind == "UserPromptSubmit" else last_answer(event) if kind == "Stop" else None
    if isinstance(said, str) and "<memories " in said:
        from rlm.companion.composer import without_block  # here, as it takes time to import
        said = without_block(said)  # an answer that quotes its context is stored without it
    if not isinstance(said, str) or not said.strip() or COMMAND.match(said):
        return None
    text = said if len(said) <= MOST_STORED else said[:MOST_STORED - 1] + "…"
    return {"text": text, "role": "user" if kind == "UserPromptSubmit" else "assistant"}


def _question_of(event: Mapping[str, Any]) -> str:
    "Return what the context of an event is about; empty: it needs none."
    kind = event.get("hook_event_name")
    if kind == "SessionStart":
        return os.path.basename(str(event.get("cwd", "")).rstrip("/\\")) or "session"
    prompt = event.get("prompt")
    return prompt[:MOST_ASKED] if kind == "UserPromptSubmit" and isinstance(prompt, str) and not COMMAND.match(prompt) else ""


def _store_turn(server: HookServer, session: str, turn: dict[str, Any]) -> bool:
    "Send a turn to be stored, and return whether it was kept: a prompt if it states something, an answer if nothing of it was rejected."
    if turn["role"] == "user":
        return bool(server.ask("/v1/observe", {"text": turn["text"], "session": session})["kept"])
    return bool(server.ask("/v1/conversations", {"session": session, "turns": [turn]})["items"])


def handle(event: Mapping[str, Any],    # event that Claude Code sent
           given: argparse.Namespace,   # options
           ) -> tuple[str, dict[str, Any]]:
    "Do what an event asks for; return the block for the context, and what the log tells. Raises `HookFailure` and others."
    question, turn = _question_of(event).strip(), None if given.no_capture else _turn_of(event)
    name, told = _session_name(given.log, event), dict[str, Any]()
    if event.get("hook_event_name") == "PreCompact":
        _count_part(given.log, session_id(event))
    apart = name if event.get("hook_event_name") == "UserPromptSubmit" else None
    block, stored = "", False
    if not question and turn is None:
        return block, told
    try:
        server = HookServer(given.url, given.namespace, given.secret)
        if question:
            asked = {"query": question, "tokens": given.tokens, "least": LEAST} | ({"apart_from": apart} if apart else {})
            found = server.ask("/v1/context", asked)
            block, told = str(found["context"]), {"memories": len(found["memories"]), "tokens": found["tokens"]}
        if turn is not None:
            stored = _store_turn(server, name, turn)
        told["by"] = "server"
    except ServerAway:
        from rlm.service import hook_alone
        told["by"] = "words"
        if question:
            block, served = hook_alone.word_context(given, question, apart)
            told |= served
        if turn is not None:
            hook_alone.write_later(given, name, turn)  # it says itself in the log what it has stored
    if stored:
        told["stored"] = 1
    return block, told


def note(log: str,  # path of the log
         told: Mapping[str, Any],  # event without any text
         ) -> None:
    "Append a line to the log; its older half is dropped when it has grown large."
    path = os.path.expanduser(log)
    os.makedirs(os.path.dirname(path) or ".", mode=0o700, exist_ok=True)
    if os.path.exists(path) and os.path.getsize(path) > LOG_BYTES:
        with open(path, "rb") as old:
            kept = old.read()[-LOG_BYTES // 2:].partition(b"\n")[2]
        temporary = f"{path}.{os.getpid()}"
        with open(temporary, "wb") as new:
            new.write(kept)
        os.replace(temporary, path)
    line = json.dumps({"at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), **told}) + "\n"
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(descriptor, line.encode())
    finally:
        os.close(descriptor)


def reason_of(error: BaseException,  # error that was raised
              ) -> str:
    "Return why an event came to nothing, without a text that somebody said."
    if isinstance(error, HookFailure):
        return str(error)
    if isinstance(error, ValueError) and not hasattr(error, "hint"):
        return "the input is no JSON object"
    message = getattr(error, "message", None) or getattr(error, "strerror", None)  # our errors have the first, the system's the second
    return f"{type(error).__name__}: {message}" if message else type(error).__name__


def main(words: Sequence[str] | None = None,  # arguments; None: those of the process
         ) -> int:
    "Serve one event from standard input; returns 0, whatever happens."
    begun, given, told = time.monotonic(), None, dict[str, Any]()
    try:
        given = read_options(words)
        given.log = os.path.expanduser(given.log)
        event = json.loads(sys.stdin.buffer.read().decode("utf-8", "replace"))
        if not isinstance(event, dict) or event.get("hook_event_name") not in EVENTS:
            raise HookFailure(f"the input is none of the events {', '.join(EVENTS)}")
        told["event"] = event["hook_event_name"]
        block, more = handle(event, given)
        told |= more
        if block:
            out = {"hookSpecificOutput": {"hookEventName": event["hook_event_name"], "additionalContext": block}}
            sys.stdout.buffer.write(json.dumps(out).encode() + b"\n")
            sys.stdout.buffer.flush()
    except (Exception, SystemExit) as error:  # a hook that fails must not stop the person's work
        told["failed"] = reason_of(error)
    told["ms"] = round(1000 * (time.monotonic() - begun))
    try:
        note(given.log if given else os.path.join(HOME, "hook.log"), told)
    except OSError as error:
        print(f"rlm hook: its log can't be written ({error.strerror}).", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
