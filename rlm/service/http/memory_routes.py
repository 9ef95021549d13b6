"""Memories and conversations as resources: routes over `Memory`.

A memory's version is its entity tag (`ETag`). A change that sends it back in `If-Match` is made to that version or not
at all: the check is made inside the transaction that would make the change, so that of two callers who have seen the
same version one is answered 412.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import asdict
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import APIRouter, Depends, Header, Query, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError

from rlm.core.errors import InvalidInput, NotFound
from rlm.service.duplicates import same_again
from rlm.service.results import memory_dict
from rlm.store.records import Edge, MemoryRecord, read_label

from .auth import AdminCaller, ReadCaller, WriteCaller
from .errors import HttpProblem
from .routes import Name, QuotedId, Service, json_response, known_params_only
from .schemas import (MAX_TURNS, ConversationBody, ExplainBody, FeedbackBody, LinkBody, LinkWeightBody, PatchBody, Time, WriteBody, answers,
                      json_schema, problem_responses)
from .tokens import Token

IfMatch = Annotated[str | None, Header(alias="If-Match", max_length=64, examples=['"1"'],
                                       description="The entity tag of the version that is to be changed; another one is answered 412")]
Cursor = Annotated[str | None, Query(max_length=64, examples=["mD3qgNSzvJ8xYc0kTqfZ_w"],
                                     description="`next_cursor` of the page before; without it, the first page")]
Count = Annotated[int, Query(ge=1, le=1000, examples=[20], description="How many at most")]
Labels = Annotated[list[Name], Query(max_length=100)]
KNOWN: dict[int | str, Any] = {200: {"description": "It says what a memory says already: that one, used once more",
                                     "content": json_schema("MemoryOut")}}
BULK = {"requestBody": {"required": True, "content": {"application/x-ndjson": {
    "schema": {"type": "string", "description": "A memory a line, as `POST /v1/memories` takes it, without slot, policy and context"},
    "example": '{"text": "I am allergic to peanuts."}\n{"text": "다음 주 화요일에 치과 예약이 있어", "tags": ["health"]}\n'}}}}


def entity_tag(record: MemoryRecord,  # a memory
               ) -> dict[str, str]:
    "Return the header that names its version."
    return {"ETag": f'"{record.version}"'}


def memory_response(record: MemoryRecord,  # a memory
                    status: int = 200,     # status code of HTTP
                    links: Sequence[Edge] = (),  # its links
                    ended: Sequence[MemoryRecord] = (),  # memories that it has ended
                    ) -> Response:
    "Return a memory with its entity tag; one that was made just now with its address, too."
    place = {"Location": f"/v1/memories/{quote(record.id, safe='')}"} if status == 201 else {}
    said = {"superseded": [r.id for r in ended]} if ended else {}
    return json_response(memory_dict(record, links) | said, status, entity_tag(record) | place)


def matched_version(header: str | None,  # value of If-Match
                    ) -> int | None:
    "Return the version that a change expects; None: whichever it is. Raises `HttpProblem`."
    if header is None or header.strip() == "*":
        return None
    found = re.fullmatch(r'"([1-9][0-9]{0,14})"', header.strip())
    if found is None:
        raise HttpProblem(412, "If-Match names no version of a memory.", 'Send the ETag of the memory as it was, such as "3", or *.')
    return int(found[1])


def provenance(caller: Token,  # token of the request
               ) -> dict[str, str]:
    "Return where a memory comes from that this caller writes."
    return {"source": "rest", "caller": caller.id}


def _list_filters(tag: Annotated[Labels, Query(description="Only with this tag; repeat it for several", examples=[["health"]])] = [],  # noqa: B006
                 match: Annotated[str, Query(pattern="^(all|any)$", examples=["all"], description="All tags, or one?")] = "all",
                 category: Annotated[Name | None, Query(description="Only of this category", examples=["fact"])] = None,
                 kind: Annotated[Name | None, Query(description="Only of this kind", examples=["block"])] = None,
                 status: Annotated[Labels, Query(description="Only of this status; any: all. Without it, hot and ltm",
                                                 examples=[["hot"]])] = [],  # noqa: B006
                 session: Annotated[Name | None, Query(description="Only from this conversation", examples=["2026-05-08"])] = None,
                 speaker: Annotated[Name | None, Query(description="Only said by this speaker", examples=["Mina"])] = None,
                 role: Annotated[Name | None, Query(description="Only said in this role", examples=["user"])] = None,
                 since: Annotated[Time | None, Query(description="Only said or true from then on", examples=["2026-01-31"])] = None,
                 until: Annotated[Time | None, Query(description="Only said or true before", examples=["2026-02-28"])] = None,
                 valid_at: Annotated[Time | None, Query(description="Only what was true then", examples=["2026-02-01"])] = None,
                 as_of: Annotated[Time | None, Query(description="As the store knew it then", examples=["2026-02-01"])] = None,
                 ) -> dict[str, Any]:
    "Return the filters of a list as `Memory.list` takes them: a dependency."
    found: dict[str, Any] = {"category": category, "kind": kind, "session": session, "speaker": speaker, "role": role, "since": since,
                             "until": until, "valid_at": valid_at, "as_of": as_of}
    if tag:
        found |= {"tags": tag, "match": match}
    if status:
        found["status"] = "any" if status == ["any"] else status
    return found


def read_lines(body: bytes,  # a memory a line, as JSON
               ) -> list[WriteBody]:
    "Return the memories of a bulk request. Raises `RequestValidationError`, naming the line, and `InvalidInput`."
    lines = [line for line in body.split(b"\n") if line.strip()]
    if not 1 <= len(lines) <= MAX_TURNS:
        raise InvalidInput(f"There are {len(lines):,} lines.", f"Send 1 to {MAX_TURNS:,}, a memory a line.")
    found = list[WriteBody]()
    for number, line in enumerate(lines, start=1):
        try:
            found.append(WriteBody.model_validate_json(line))
        except ValidationError as e:
            raise RequestValidationError([{**dict(one), "loc": ("body", f"line {number}", *one["loc"])} for one in e.errors()]) from None
        if found[-1].slot is not None:
            raise InvalidInput(f"Line {number} has a slot.", "Write near an anchor with POST /v1/memories.")
    return found


class NdjsonResponse(Response):
    "An answer of one JSON object a line."

    media_type = "application/x-ndjson"


def store_one(service: Service,  # memories, metrics and spans
              body: WriteBody,   # memory to be stored
              caller: Token,     # token of the request
              ) -> Response:
    "Store a memory: 201; one that says the same already is returned with `duplicate: true`: 200. Raises `InvalidInput`, `StoreError`."
    policy, fields = None if body.policy is None else body.policy.model_dump(exclude_none=True), body.fields()
    with service.pool.use(caller.namespace) as memory, service.tracer.span("memory.write", slot=body.slot or ""):
        if body.slot is None and (known := same_again(memory, body.text, fields)) is not None:
            return json_response(memory_dict(known) | {"duplicate": True}, 200, entity_tag(known))
        stored = memory.write(body.text, slot=body.slot, policy=policy, context=body.context, **fields, provenance=provenance(caller))
        return memory_response(stored, 201, ended=memory.superseded_by(stored.id))


def store_many(service: Service,         # memories, metrics and spans
               bodies: list[WriteBody],  # memories to be stored
               caller: Token,            # token of the request
               ) -> list[MemoryRecord]:
    "Store many memories in one transaction, and return them. Raises `InvalidInput`, `StoreError`."
    items = [{"text": b.text, **b.fields(), "provenance": provenance(caller)} for b in bodies]
    with service.pool.use(caller.namespace) as memory, service.tracer.span("memory.write_many"):
        return memory.write_many(items, len(items))


def collection_routes(service: Service,  # memories, metrics and spans
                      ) -> APIRouter:
    "Return the routes of all memories: list, write, write many."
    routes = APIRouter(prefix="/v1", tags=["memories"], dependencies=[Depends(known_params_only)])

    @routes.get("/memories", **answers("MemoriesOut"))
    def list_memories(caller: ReadCaller, filters: Annotated[dict[str, Any], Depends(_list_filters)], k: Count = 20,
                      cursor: Cursor = None) -> Response:
        "The memories stored last, newest first, a page at a time. A cursor holds however much is written in between."
        with service.pool.use(caller.namespace) as memory:
            return json_response(memory.list(k, cursor=cursor, **filters).as_dict())

    @routes.post("/memories", **answers("MemoryOut", 409, 507, status=201, more=KNOWN))
    def create_memory(body: WriteBody, caller: WriteCaller) -> Response:
        """Store a memory. It is stored when it is answered; `Location` is its address, `ETag` its version. Words that are known
        already, of the same speaker and without an id, time or conversation of their own, are not stored again: 200, and `duplicate`."""
        return store_one(service, body, caller)

    @routes.post("/write", **answers("MemoryOut", 409, 507, status=201, more=KNOWN), deprecated=True)
    def write(body: WriteBody, caller: WriteCaller) -> Response:
        "Another name of `POST /v1/memories`."
        return store_one(service, body, caller)

    @routes.post("/memories:bulk", status_code=201, responses=problem_responses(409, 507), openapi_extra=BULK,
                 response_class=NdjsonResponse)
    async def create_memories(request: Request, caller: WriteCaller) -> Response:
        "Store many memories, a JSON object a line, in one transaction: all of them or none. The answer has a line for each, in order."
        stored = await run_in_threadpool(store_many, service, read_lines(await request.body()), caller)
        return NdjsonResponse("".join(json.dumps(memory_dict(r), ensure_ascii=False) + "\n" for r in stored), 201)
    return routes


def memory_routes(service: Service,  # memories, metrics and spans
                  ) -> APIRouter:
    "Return the routes of one memory."
    routes = APIRouter(prefix="/v1/memories/{id}", tags=["memories"], dependencies=[Depends(known_params_only)])

    @routes.get("", **answers("MemoryOut", 404))
    def get_memory(id: QuotedId, caller: ReadCaller,
                   as_of: Annotated[Time | None, Query(description="The version that was present then", examples=["2026-02-01"])] = None,
                   ) -> Response:
        "One memory, whole. Slashes and other letters of its id are quoted: `a/b` is `a%2Fb`."
        with service.pool.use(caller.namespace) as memory:
            found = memory.get(id, as_of)
            return memory_response(found, links=memory.links(id) if as_of is None else ())

    @routes.patch("", **answers("MemoryOut", 404, 412, 507))
    def update_memory(id: QuotedId, body: PatchBody, caller: WriteCaller, if_match: IfMatch = None) -> Response:
        "Make a new version of a memory; the old one stays in its history. Without a change there is no new version."
        with service.pool.use(caller.namespace) as memory:
            return memory_response(memory.update(id, if_version=matched_version(if_match), **body.changes()))

    @routes.delete("", **answers("DeletedOut", 404, 412, 507))
    def delete_memory(id: QuotedId, caller: WriteCaller, if_match: IfMatch = None, erase: Annotated[bool, Query(
            description="Leave no trace: every version, index entry and freed byte. Needs the right admin")] = False) -> Response:
        "Take a memory out of the present; its history stays, and it can be restored. Erased is gone for good."
        if erase and not caller.may("admin"):
            raise HttpProblem(403, "This token does not have the right to erase for good.",
                              "Delete without erase, or use an admin's token.")
        with service.pool.use(caller.namespace) as memory:
            count = memory.delete(id, erase=erase, if_version=matched_version(if_match))
        return json_response({"erased" if erase else "deleted": count})

    @routes.post("/restore", **answers("MemoryOut", 404, 507))
    def restore_memory(id: QuotedId, caller: WriteCaller) -> Response:
        "Bring a deleted memory back as its next version, without its links. The request has no body."
        with service.pool.use(caller.namespace) as memory:
            return memory_response(memory.restore(id))

    @routes.get("/history", **answers("HistoryOut", 404))
    def get_history(id: QuotedId, caller: ReadCaller) -> Response:
        "Every version that is kept, and what happened to it; also of a deleted memory."
        with service.pool.use(caller.namespace) as memory:
            return json_response(memory.history(id).as_dict())

    @routes.post("/feedback", **answers("UseOut", 404, 507))
    def give_feedback(id: QuotedId, body: FeedbackBody, caller: WriteCaller) -> Response:
        "Say that a memory was used, and how it went. A rule that misled too often is held."
        with service.pool.use(caller.namespace) as memory:
            memory.feedback(id, helped=body.helped, failed=body.failed, used=body.used, query=body.query)
            found = memory.get(id)
        return json_response({"id": found.id, "success": found.success, "failure": found.failure, "access_count": found.access_count})

    @routes.post("/explain", **answers("ExplanationOut", 404))
    def explain_memory(id: QuotedId, body: ExplainBody, caller: ReadCaller) -> Response:
        "Why this memory is found for a question, or why not."
        with service.pool.use(caller.namespace) as memory:
            return json_response(memory.explain(body.query, id, **body.filters.given()).as_dict())
    return routes


def link_routes(service: Service,  # memories, metrics and spans
                ) -> APIRouter:
    "Return the routes of the links of a memory."
    routes = APIRouter(prefix="/v1/memories/{id}/links", tags=["links"], dependencies=[Depends(known_params_only)])

    @routes.get("", **answers("EdgesOut", 404))
    def list_links(id: QuotedId, caller: ReadCaller) -> Response:
        "The links from and to a memory, strongest first."
        with service.pool.use(caller.namespace) as memory:
            return json_response({"items": [asdict(edge) for edge in memory.links(id)]})

    def link(caller: Token, src: str, dst: str, relation: str, weight: float, status: int) -> Response:
        with service.pool.use(caller.namespace) as memory:
            memory.link(src, dst, relation, weight)
            edge = Edge(memory.get(src).id, memory.get(dst).id, read_label(relation, "relation"), weight)
        return json_response(asdict(edge), status)

    @routes.post("", **answers("EdgeOut", 404, 507, status=201))
    def create_link(id: QuotedId, body: LinkBody, caller: WriteCaller) -> Response:
        "Link a memory to another one; a link of this type that is there gets the new weight."
        return link(caller, id, body.target, body.relation, body.weight, 201)

    @routes.put("/{target}", **answers("EdgeOut", 404, 507))
    def put_link(id: QuotedId, target: QuotedId, body: LinkWeightBody, caller: WriteCaller) -> Response:
        "Link two memories, or set the weight of their link. The same request again changes nothing."
        return link(caller, id, target, body.relation, body.weight, 200)

    @routes.delete("/{target}", **answers("UnlinkedOut", 404, 507))
    def delete_link(id: QuotedId, target: QuotedId, caller: WriteCaller, relation: Annotated[Name | None, Query(
            description="Only the link of this type; without it, whatever links them", examples=["supports"])] = None) -> Response:
        "Remove the links between two memories, and say how many there were."
        with service.pool.use(caller.namespace) as memory:
            return json_response({"removed": memory.unlink(id, target, relation)})
    return routes


def audit_routes(service: Service,  # memories, metrics and spans
                 ) -> APIRouter:
    "Return the route of audits."
    routes = APIRouter(prefix="/v1", tags=["memories"], dependencies=[Depends(known_params_only)])

    @routes.get("/audit", **answers("AuditOut", 404))
    def audit(caller: AdminCaller,
              query: Annotated[str | None, Query(max_length=10_000, description="What answered it then, and answers whose question holds "
                                                 "these words", examples=["치과"])] = None,
              id: Annotated[Name | None, Query(description="A memory: its version then, and answers that held it",
                                               examples=["dentist"])] = None,
              when: Annotated[Time | None, Query(description="A moment, or a day: its end. Without it, now",
                                                 examples=["2026-05-08"])] = None,
              k: Count = 20) -> Response:
        "What was believed at a moment, and what had been served by then: to whom, in which version, with which score. Needs admin."
        with service.pool.use(caller.namespace) as memory:
            return json_response(memory.audit(when, query, id, k).as_dict())
    return routes


def conversation_routes(service: Service,  # memories, metrics and spans
                        ) -> APIRouter:
    "Return the routes of conversations."
    routes = APIRouter(prefix="/v1/conversations", tags=["conversations"], dependencies=[Depends(known_params_only)])

    @routes.post("", **answers("ConversationOut", 409, 507, status=201))
    def add_conversation(body: ConversationBody, caller: WriteCaller) -> Response:
        "Store turns of a conversation, in order, in one transaction; a session that is there is continued."
        turns, common = [turn.fields() for turn in body.turns], {"tags": body.tags} if body.tags else {}
        with service.pool.use(caller.namespace) as memory, service.tracer.span("memory.add_conversation"):
            stored = memory.add_conversation(turns, body.session, **common, provenance=provenance(caller))
        session = stored[0].session or ""
        return json_response({"session": session, "items": [memory_dict(r) for r in stored]}, 201,
                             {"Location": f"/v1/conversations/{quote(session, safe='')}"})

    @routes.get("/{session}", **answers("ConversationPageOut", 404))
    def get_conversation(session: QuotedId, caller: ReadCaller, k: Count = 100, cursor: Cursor = None) -> Response:
        "The last turns of a conversation, in order; with a cursor, those before."
        with service.pool.use(caller.namespace) as memory:
            page = memory.list(k, cursor=cursor, session=session)
        if not page and cursor is None:
            raise NotFound(f"There is no conversation {session[:60]!r} in namespace {caller.namespace!r}.", "Check its name.")
        return json_response({"session": page[0].session if page else session, "items": [memory_dict(r) for r in reversed(page)],
                              "next_cursor": page.next_cursor})
    return routes
