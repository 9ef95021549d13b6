"""A memory behind `rlm serve`, with the verbs of `Memory`: `Memory("https://memory.example", token=…)` or `rlm.connect`.

Nothing but the standard library is needed. A call is one request, and what can't be done raises the error that `Memory` would raise.
"""

import builtins
import copy
import json
import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from datetime import date, datetime, timedelta
from http.client import HTTPException
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlencode, urlsplit
from urllib.request import HTTPRedirectHandler, OpenerDirector, ProxyHandler, Request, build_opener

from rlm.companion.composer import ContextBlock
from rlm.core.clock import from_iso, to_iso
from rlm.core.errors import AlreadyExists, InvalidInput, NotFound, RlmError, StoreBusy, StoreFull, StoreReadOnly, VersionConflict
from rlm.service.memory import ErasureReport, in_thread
from rlm.service.results import Hit, MemoryPage, SearchResults
from rlm.service.writer import StoredTurns
from rlm.store.filters import Filters
from rlm.store.records import FIELDS, JSON_FIELDS, Edge, MemoryRecord, make_record, read_label, stored_id

if TYPE_CHECKING:  # loaded with the first conversation that is read
    from rlm.service.conversation_reader import ConversationReading

LOOPBACK = ("localhost", "127.0.0.1", "::1")  # hosts to which a token may go without TLS
_TOKEN = re.compile(r"[!-~]+")
_TIMES = frozenset({"created_at", "updated_at", "last_used_at", "archived_at", "valid_from", "valid_to"})


class RemoteError(RlmError):
    "The server was not reached, refused the token, or failed; whether a write was stored is not known when no answer came."


_ERRORS: dict[int, type[RlmError]] = {400: InvalidInput, 404: NotFound, 409: AlreadyExists, 412: VersionConflict, 413: InvalidInput,
                                      422: InvalidInput, 503: StoreBusy, 507: StoreFull}


def _record_of(given: Mapping[str, Any]) -> MemoryRecord:
    "Return the record that a server sent; its number in the store, which is not sent, is 0."
    values: dict[str, Any] = dict.fromkeys(FIELDS) | {"seq": 0, "tags": ()} | {name: {} for name in JSON_FIELDS}
    values |= {name: value for name, value in given.items() if name in values}
    values |= {name: from_iso(values[name]) for name in _TIMES if values[name] is not None} | {"tags": tuple(values["tags"])}
    return make_record(values)


def _hit_of(given: Mapping[str, Any], source: str) -> Hit:
    "Return the hit that a server sent: what a search of the store itself would have returned."
    layer = "" if given["layer"] == source else given["layer"]
    return Hit(given["rank"], given["score"], _record_of(given["memory"]), given["shares"], layer, given.get("hops"), tuple(given["path"]),
               given.get("relevance"), given.get("past", ""), duplicates=tuple(given.get("duplicates", ())),
               placed_by=given.get("placed_by", ""))


def _turn_bodies(turns: Iterable[Any]) -> list[Any]:
    "Return turns as a request holds them."
    return [{"speaker": turn[0], "text": turn[1]} if isinstance(turn, tuple) and len(turn) == 2
            else {"text": turn} if isinstance(turn, str) else turn for turn in turns]


def plain(value: Any,  # an argument: JSON, a time, or a set or tuple of values
          ) -> Any:
    "Return an argument as JSON can hold it."
    if isinstance(value, datetime):
        return to_iso(value) if value.tzinfo else value.isoformat()
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Mapping):
        return {str(name): plain(one) for name, one in value.items()}
    return [plain(one) for one in value] if isinstance(value, list | tuple | set | frozenset) else value


def connect(url: str,                      # address of the server, such as https://memory.example
            token: str | None = None,      # a token of `rlm tokens add`; None: a server that is open to this machine
            namespace: str | None = None,  # the partition; None: the token's first
            **more: Any,                   # timeout, insecure: as `RemoteMemory` takes them
            ) -> "RemoteMemory":
    "Return a memory behind `rlm serve`. Nothing is sent before the first call."
    return RemoteMemory(url, token, namespace, **more)


class _NoRedirect(HTTPRedirectHandler):
    "Follows no redirect: it would carry the token to another host."

    def redirect_request(self, *args: Any, **kwargs: Any) -> None:
        "Refuse a redirection: a token goes to no other address."


class RemoteAdmin:
    "Erases namespaces of a server that the token opens. It takes the right admin."

    def __init__(self,
                 ask: Callable[..., dict[str, Any]],  # sends a method, a path and a body, and returns the answer
                 ) -> None:
        self._ask = ask

    def erase_namespace(self,
                        name: str,  # a namespace that the token opens
                        ) -> ErasureReport:
        "Remove a namespace for good, as `memory.admin` does, and say what went. Raises `NotFound`, `RemoteError` without the right."
        return self._receipt("DELETE", name)

    def purge_namespace(self,
                        name: str,       # a namespace that the token opens
                        age: timedelta,  # time since the deletion, at least
                        dry_run: bool = False,  # True: only tell what would be erased
                        ) -> ErasureReport:
        "Erase the memories of a namespace that were deleted long ago. Raises `NotFound`, `RemoteError` without the right."
        return self._receipt("POST", name, "/purge", {"days": age / timedelta(days=1), "dry_run": dry_run})

    def _receipt(self, method: str, name: str, more: str = "", body: Any = None) -> ErasureReport:
        said = self._ask(method, f"/v1/namespaces/{quote(read_label(name, 'namespace'), safe='')}{more}", body)
        return ErasureReport(said["namespace"], from_iso(said["at"]), said["erased"], tuple(said["ids"]), tuple(map(Path, said["copies"])))


class RemoteMemory:
    """A namespace of a server, with the verbs of `Memory`, which take what they take there, and `accept` and `reject` of its companion.
    What is not given is as the server's settings have it. Threads may share it; it holds no connection open."""

    def __init__(self,
                 url: str,                      # address of the server, such as https://memory.example
                 token: str | None = None,      # a token of `rlm tokens add`; None: a server that is open to this machine
                 namespace: str | None = None,  # the partition; None: the token's first
                 timeout: float = 30.0,         # seconds that a request may take
                 insecure: bool = False,        # send the token over plain HTTP to another machine
                 ) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise InvalidInput(f"{url!r} is not the address of a server.", "Give one such as https://memory.example.")
        if token and parts.scheme == "http" and parts.hostname not in LOOPBACK and not insecure:
            raise InvalidInput(f"The token would go to {parts.hostname} unencrypted.", "Use https, or say insecure=True.")
        if token and not _TOKEN.fullmatch(token := token.strip()):
            raise InvalidInput("The token holds what no token of `rlm tokens add` holds.", "Give one alone, as that command printed it.")
        self.url, self.timeout = url.rstrip("/"), timeout
        self._headers = {"Accept": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {}) | (
            _inside(namespace) if namespace else {})
        here = [ProxyHandler({})] if parts.hostname in LOOPBACK else []  # a proxy has no way to this machine, and would see the token
        self._opener: OpenerDirector = build_opener(_NoRedirect, *here)

    def __repr__(self) -> str:
        return f"RemoteMemory({self.url!r})"

    def write(self, /, text: str, **fields: Any) -> MemoryRecord:
        "Store one memory, and return it. Raises `InvalidInput`."
        return _record_of(self._ask("POST", "/v1/memories", {"text": text, **fields}))

    def write_many(self, items: Iterable[str | Mapping[str, Any]]) -> builtins.list[MemoryRecord]:
        "Store many in order, all or none, and return them; 5,000 at most. Raises `InvalidInput`, naming the line."
        lines = [_json({"text": item} if isinstance(item, str) else item) for item in items]
        if not lines:
            return []
        answer = self._send("POST", "/v1/memories:bulk", b"\n".join(lines), {"Content-Type": "application/x-ndjson"})
        return [_record_of(self._read(line)) for line in answer.split(b"\n") if line]

    def add_conversation(self, /, turns: Iterable[Any], session: str | None = None,
                         tags: Iterable[str] = (),  # tags of each turn that has none
                         history: bool = False) -> StoredTurns:
        """Store the turns of one conversation, all or none, and return them; `refused` of the result names those that state what a person
        has rejected, or that have no words. Raises `InvalidInput`."""
        body = {"turns": _turn_bodies(turns), "tags": list(tags)} | ({} if session is None else {"session": session})
        told = self._ask("POST", "/v1/conversations", body | ({"history": True} if history else {}))
        return StoredTurns(map(_record_of, told["items"]), {one["turn"]: one["reason"] for one in told.get("refused", ())})

    def get(self, id: str, as_of: Any = None) -> MemoryRecord:
        "Return one memory by its id. Raises `NotFound`."
        return _record_of(self._ask("GET", _at(id) + _query(as_of=as_of)))

    def list(self, /, k: int = 10, *, cursor: str | None = None, **filters: Any) -> MemoryPage:
        "Return the memories stored last, newest first, and the cursor of the next page. Raises `InvalidInput`."
        tags = filters.pop("tags", None)
        answer = self._ask("GET", "/v1/memories" + _query(k=k, cursor=cursor, tag=tags, **filters))
        return MemoryPage(tuple(_record_of(r) for r in answer["items"]), answer.get("next_cursor"))

    def search(self, /, query: str, k: int | None = None, *, slot: str | None = None, radius: int | None = None, fallback: bool = True,
               min_score: float | None = None, context: str | None = None, **filters: Any) -> SearchResults:
        "Return the memories that fit the query best, best first, as `Memory.search` does. Raises `InvalidInput`."
        wanted = Filters.read(**filters)
        body = {"query": query, "k": k, "slot": slot, "radius": radius, "min_score": min_score, "context": context,
                "filters": _given(filters)}
        answer = self._ask("POST", "/v1/memories:search", _given(body) | ({} if fallback else {"fallback": False}))
        return SearchResults(answer["query"], wanted, tuple(_hit_of(h, answer["source"]) for h in answer["hits"]), answer["source"],
                             answer["ranked_by"], waiting=answer.get("waiting", 0))

    def context(self, /, query: str, tokens: int = 1024, *, facts: Mapping[str, Any] | None = None, apart_from: str | None = None,
                least: float = 0.0) -> ContextBlock:
        "Return a block for a prompt within a budget: pinned memories, then what answers the question. Raises `InvalidInput`."
        made = self._ask("POST", "/v1/context", {"query": query, "tokens": tokens, "least": least} | _given(
            {"facts": facts, "apart_from": apart_from}))
        used = tuple(zip(made["memories"], made["resolutions"], strict=True))
        return ContextBlock(made["context"], made["tokens"], tokens, used, tuple(made["left_out"]), tuple(made["rules"]))

    def remember(self, /, messages: Iterable[Any],
                 model: str | None = None,  # `configured`: the server's language model reads it; None: rules do
                 ) -> "ConversationReading":
        "Note what is worth keeping of a conversation as candidates, and say why the rest is not. Raises `InvalidInput`."
        from rlm.service.conversation_reader import ConversationReading
        made = self._ask("POST", "/v1/conversations:remember", {"turns": _turn_bodies(messages), "use_model": model is not None})
        return ConversationReading(tuple(_record_of(r) for r in made["proposed"]),
                                   tuple((p["words"], p["reason"]) for p in made["passed_over"]), made["model"],
                                   tuple((s["id"], s["text"], s["by"]) for s in made["superseded"]))

    def update(self, id: str, /, *, if_version: int | None = None, **changes: Any) -> MemoryRecord:
        "Make a new version and return it; the old one stays in the history. Raises `NotFound`, `InvalidInput`, `VersionConflict`."
        return _record_of(self._ask("PATCH", _at(id), changes, _if_match(if_version)))

    def delete(self, id: str, *, erase: bool = False, if_version: int | None = None, restart: bool = False) -> int:
        "Take a memory out of the present, or out of the file; returns how many. Raises `NotFound`, `VersionConflict`."
        asked = _query(erase=erase or None, restart=restart or None)
        return int(self._ask("DELETE", _at(id) + asked, None, _if_match(if_version))["erased" if erase else "deleted"])

    def restore(self, id: str) -> MemoryRecord:
        "Bring a deleted memory back as its next version, and return it. Raises `NotFound`."
        return _record_of(self._ask("POST", _at(id, "/restore")))

    def history(self, id: str) -> dict[str, Any]:
        "Return every version kept and what happened, as JSON holds it. Raises `NotFound`."
        return self._ask("GET", _at(id, "/history"))

    def explain(self, /, query: str, id: str, **filters: Any) -> dict[str, Any]:
        "Return why this memory is found for this query, or why not, as JSON holds it. Raises `NotFound`."
        return self._ask("POST", _at(id, "/explain"), {"query": query, "filters": _given(filters)})

    def link(self, src: str, dst: str, relation: str = "related", weight: float = 1.0) -> None:
        "Link two memories; again to set another weight. Raises `NotFound`, `InvalidInput`."
        self._ask("POST", _at(src, "/links"), {"target": dst, "relation": relation, "weight": weight})

    def unlink(self, src: str, dst: str, relation: str | None = None) -> int:
        "Remove links between two memories; returns how many there were. Raises `NotFound`."
        return int(self._ask("DELETE", _at(src, f"/links/{quote(stored_id(dst), safe='')}") + _query(relation=relation))["removed"])

    def links(self, id: str) -> builtins.list[Edge]:
        "Return links from and to a memory, strongest first. Raises `NotFound`."
        return [Edge(**edge) for edge in self._ask("GET", _at(id, "/links"))["items"]]

    def feedback(self, id: str, *, helped: int = 0, failed: int = 0, used: int = 1, query: str | None = None) -> None:
        "Say that a memory was used, and how it went. Raises `NotFound`."
        self._ask("POST", _at(id, "/feedback"), _given({"helped": helped, "failed": failed, "used": used, "query": query}))

    def recall(self, /, query: str, k: int | None = None, **filters: Any) -> SearchResults:
        "Return what fits the query from working memory, else from everything; it moves attention. Raises `InvalidInput`."
        wanted = Filters.read(**filters)
        answer = self._ask("POST", "/v1/recall", _given({"query": query, "k": k, "filters": _given(filters)}))
        found = tuple(_hit_of(h, answer["source"]) for h in answer["results"])
        return SearchResults(answer["query"], wanted, found, answer["source"], answer["ranked_by"], waiting=answer.get("waiting", 0))

    def review(self) -> dict[str, Any]:
        "Return what waits for a person, and what was rejected, as JSON holds it."
        return self._ask("GET", "/v1/review")

    def accept(self, id: str, text: str | None = None) -> MemoryRecord:
        "Confirm a memory as a person does, in other words if they are given, and return it. Raises `NotFound`."
        return _record_of(self._ask("POST", "/v1/review/acceptances", _given({"id": id, "text": text})))

    def reject(self, id: str, reason: str | None = None, part: str | None = None) -> dict[str, Any]:
        """Reject a memory, or a part of it, as a person does: it is deleted or left out, and not remembered again. Returns the rejection.
        Raises `NotFound`."""
        return self._ask("POST", "/v1/review/rejections", _given({"id": id, "reason": reason, "part": part}))

    def audit(self, when: Any = None, query: str | None = None, id: str | None = None, k: int = 20) -> dict[str, Any]:
        "Return what was believed at a moment, and what had been served by then, as JSON holds it. Raises `NotFound`, `InvalidInput`."
        return self._ask("GET", "/v1/audit" + _query(when=when, query=query, id=id, k=k))

    def stats(self) -> dict[str, Any]:
        "Return counts by kind, status and category, and dates."
        return self._ask("GET", "/v1/stats")

    def namespaces(self) -> builtins.list[str]:
        "Return the namespaces that the token opens, the usual one first."
        return list(self._ask("GET", "/v1/namespaces")["namespaces"])

    def namespace(self, name: str) -> "RemoteMemory":
        "Return the memory of another namespace of the same server."
        other = copy.copy(self)
        other._headers = self._headers | _inside(name)
        return other

    @property
    def admin(self) -> RemoteAdmin:
        "Return what erases namespaces of the server."
        return RemoteAdmin(self._ask)

    def close(self) -> None:
        "Do nothing, as no connection is held open: so that a program may close a memory whatever it is."

    def __enter__(self) -> "RemoteMemory":
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    # a twin of each for asyncio, which does the same in a thread
    awrite = in_thread(write)
    awrite_many = in_thread(write_many)
    aadd_conversation = in_thread(add_conversation)
    aget = in_thread(get)
    alist = in_thread(list)
    asearch = in_thread(search)
    aupdate = in_thread(update)
    adelete = in_thread(delete)
    acontext = in_thread(context)
    aremember = in_thread(remember)
    arestore = in_thread(restore)
    ahistory = in_thread(history)
    aexplain = in_thread(explain)
    alink = in_thread(link)
    aunlink = in_thread(unlink)
    alinks = in_thread(links)
    afeedback = in_thread(feedback)
    arecall = in_thread(recall)
    areview = in_thread(review)
    aaccept = in_thread(accept)
    areject = in_thread(reject)
    aaudit = in_thread(audit)
    astats = in_thread(stats)
    anamespaces = in_thread(namespaces)
    aclose = in_thread(close)

    def _ask(self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None) -> dict[str, Any]:
        "Send JSON, and return the JSON that comes back."
        sent = None if body is None else _json(body)
        more = ({"Content-Type": "application/json"} if sent else {}) | dict(headers or {})
        return self._read(self._send(method, path, sent, more))

    def _read(self, data: bytes) -> dict[str, Any]:
        "Return the JSON of an answer. Raises `RemoteError` for what another program answers, such as the page of a login."
        with suppress(ValueError, RecursionError):
            if isinstance(answer := json.loads(data), dict):
                return answer
        raise RemoteError(f"{self.url} answers, and not as `rlm serve` does.", "Check the address.")

    def _send(self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]) -> bytes:
        "Send a request, and return the body of its answer; an answer that is an error is raised."
        request = Request(self.url + path, body, self._headers | dict(headers), method=method)
        try:
            with self._opener.open(request, timeout=self.timeout) as answer:
                return bytes(answer.read())
        except HTTPError as e:
            with e:
                raise _problem(e.code, e.read()) from None
        except (URLError, HTTPException, OSError) as e:
            raise RemoteError(f"{self.url} did not answer: {getattr(e, 'reason', e)}.", "Is `rlm serve` running there?") from e


def _problem(status: int, body: bytes) -> RlmError:
    "The error that an answer stands for."
    try:
        said = json.loads(body)
    except (ValueError, RecursionError):
        said = {}
    said = said if isinstance(said, dict) else {}
    detail = str(said.get("detail") or said.get("title") or f"The server answered with status {status}.")
    kind = StoreReadOnly if status == 403 and "only be read" in detail else _ERRORS.get(status, RemoteError)
    wrong = [e for e in said.get("errors") or () if isinstance(e, dict)]  # field by field
    return kind(detail, str(said.get("hint") or "") or " ".join(": ".join(filter(None, map(str, e.values()))) for e in wrong))


def _json(value: Any) -> bytes:
    "What is sent of an argument."
    try:
        return json.dumps(plain(value), ensure_ascii=False).encode()
    except (TypeError, ValueError) as e:  # an object, half a surrogate pair
        raise InvalidInput(f"It can't be sent as JSON: {e}.", "Give texts, numbers, times, and lists and dictionaries of them.") from e


def _inside(namespace: str) -> dict[str, str]:
    "The header that names a namespace, percent-encoded: a header holds no Korean."
    return {"Rlm-Namespace": quote(read_label(namespace, "namespace"), safe="")}


def _given(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _at(id: str, more: str = "") -> str:
    return f"/v1/memories/{quote(stored_id(id), safe='')}{more}"


def _query(**values: Any) -> str:
    found = {name: plain(value) for name, value in _given(values).items()}
    return "?" + urlencode(found, doseq=True) if found else ""


def _if_match(version: int | None) -> dict[str, str]:
    return {} if version is None else {"If-Match": f'"{quote(str(version))}"'}
