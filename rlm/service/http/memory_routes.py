"""Memories and conversations as resources: routes over `Memory`.

A memory's version is its entity tag (`ETag`). A change that sends it back in `If-Match` is made to that version or not
at all: the check is made inside the transaction that would make the change, so that of two callers who have seen the
same version one is answered 412.
"""

import json
import re
from dataclasses import asdict
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import APIRouter, Depends, Header, Query, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError

from rlm.core.errors import InvalidInput, NotFound
from rlm.service.capture import write_once
from rlm.service.memory import Memory
from rlm.service.results import memory_dict
from rlm.store.records import Edge, MemoryRecord, read_label

from .errors import HttpProblem
from .routing import Call, Name, QuotedId, Routes, Service, WriteCaller, json_response, known_params_only, memory_response
from .schemas import (MAX_TURNS, ConversationBody, ExplainBody, FeedbackBody, LinkBody, LinkWeightBody, PatchBody, Time, WriteBody,
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
everything, one, links = Routes("/v1", "memories"), Routes("/v1/memories/{id}", "memories"), Routes("/v1/memories/{id}/links", "links")
talks = Routes("/v1/conversations", "conversations")
BULK = {"requestBody": {"required": True, "content": {"application/x-ndjson": {
    "schema": {"type": "string", "description": "A memory a line, as `POST /v1/memories` takes it, without slot, policy and context"},
    "example": '{"text": "I am allergic to peanuts."}\n{"text": "다음 주 화요일에 치과 예약이 있어", "tags": ["health"]}\n'}}}}


def _matched_version(header: str | None) -> int | None:
    "Return the version that a change expects; None: whichever it is. Raises `HttpProblem`."
    if header is None or header.strip() == "*":
        return None
    found = re.fullmatch(r'"([1-9][0-9]{0,14})"', header.strip())
    if found is None:
        raise HttpProblem(412, "If-Match names no version of a memory.", 'Send the ETag of the memory as it was, such as "3", or *.')
    return int(found[1])


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
                 valid_at: Annotated[Time | None, Query(description="Only what was true then, by what is known now",
                                                        examples=["2026-02-01"])] = None,
                 as_of: Annotated[Time | None, Query(description="What the store knew then, right or wrong",
                                                     examples=["2026-02-01"])] = None,
                 ) -> dict[str, Any]:
    "Return the filters of a list as `Memory.list` takes them: a dependency."
    found: dict[str, Any] = {"category": category, "kind": kind, "session": session, "speaker": speaker, "role": role, "since": since,
                             "until": until, "valid_at": valid_at, "as_of": as_of}
    if tag:
        found |= {"tags": tag, "match": match}
    if status:
        found["status"] = "any" if status == ["any"] else status
    return found


def _read_lines(body: bytes) -> list[WriteBody]:
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


@everything.add("GET", "/memories", "MemoriesOut")
def list_memories(call: Call, filters: Annotated[dict[str, Any], Depends(_list_filters)], k: Count = 20, cursor: Cursor = None) -> Any:
    "Return the memories stored last, newest first, a page at a time. A cursor holds however much is written in between."
    return call.memory.list(k, cursor=cursor, **filters)


@everything.add("POST", "/memories", "MemoryOut", 409, 507, status=201, more=KNOWN, earlier="/v1/write")
def create_memory(call: Call, body: WriteBody) -> Any:
    """Store a memory. It is stored when it is answered; `Location` is its address, `ETag` its version. Words that are known
    already, of the same speaker and without an id, time or conversation of their own, are not stored again: 200, and `duplicate`."""
    policy, fields, memory = None if body.policy is None else body.policy.model_dump(exclude_none=True), body.fields(), call.memory
    with call.service.tracer.span("memory.write", slot=body.slot or ""):
        stored, known = write_once(memory, body.text, fields, call.provenance, slot=body.slot, policy=policy, context=body.context)
        if known:
            return memory_response(stored, duplicate=True)
        ended = [r.id for r in memory.superseded_by(stored.id)]
        return memory_response(stored, 201, **({"superseded": ended} if ended else {}))


def bulk_routes(service: Service) -> APIRouter:
    "Return the route that stores many memories, whose body is no JSON."
    routes = APIRouter(tags=["memories"], dependencies=[Depends(known_params_only)])

    def store(bodies: list[WriteBody], caller: Token) -> list[MemoryRecord]:
        with service.pool.use(caller.namespace) as memory, service.tracer.span("memory.write_many"):
            mine = Call(service, caller, memory).provenance
            return memory.write_many([{"text": b.text, **b.fields(), "provenance": mine} for b in bodies], len(bodies))

    @routes.post("/v1/memories:bulk", status_code=201, responses=problem_responses(409, 507), openapi_extra=BULK,
                 response_class=NdjsonResponse)
    async def create_memories(request: Request, caller: WriteCaller) -> Response:
        "Store many memories, a JSON object a line, in one transaction: all of them or none. The answer has a line for each, in order."
        stored = await run_in_threadpool(store, _read_lines(await request.body()), caller)
        return NdjsonResponse("".join(json.dumps(memory_dict(r), ensure_ascii=False) + "\n" for r in stored), 201)
    return routes


@one.add("GET", "", "MemoryOut", 404)
def get_memory(call: Call, id: QuotedId, as_of: Annotated[Time | None, Query(
        description="The version that was present then", examples=["2026-02-01"])] = None) -> Any:
    "Return one memory, whole. Slashes and other letters of its id are quoted: `a/b` is `a%2Fb`."
    found = call.memory.get(id, as_of)
    near = memory_dict(found, call.memory.links(id)).get("links") if as_of is None else None
    return memory_response(found, **({"links": near} if near else {}))


@one.add("PATCH", "", "MemoryOut", 404, 412, 507)
def update_memory(call: Call, id: QuotedId, body: PatchBody, if_match: IfMatch = None) -> MemoryRecord:
    "Make a new version of a memory; the old one stays in its history. Without a change there is no new version."
    return call.memory.update(id, if_version=_matched_version(if_match), **body.changes())


@one.add("DELETE", "", "DeletedOut", 404, 412, 507)
def delete_memory(call: Call, id: QuotedId, if_match: IfMatch = None, erase: Annotated[bool, Query(
        description="Leave no trace: every version, index entry and freed byte. Needs the right admin")] = False,
                  restart: Annotated[bool, Query(
                      description="Its conversation begins anew: the same words are stored again")] = False) -> Any:
    "Take a memory out of the present; its history stays, and it can be restored. Erased is gone for good."
    if erase and not call.caller.may("admin"):
        raise HttpProblem(403, "This token does not have the right to erase for good.", "Delete without erase, or use an admin's token.")
    return {"erased" if erase else "deleted": call.memory.delete(
        id, erase=erase, if_version=_matched_version(if_match), restart=restart)}


@one.add("POST", "/restore", "MemoryOut", 404, 507)
def restore_memory(call: Call, id: QuotedId) -> MemoryRecord:
    "Bring a deleted memory back as its next version, without its links. The request has no body."
    return call.memory.restore(id)


@one.add("GET", "/history", "HistoryOut", 404)
def get_history(call: Call, id: QuotedId) -> Any:
    "Return every version that is kept, and what happened to it; also of a deleted memory."
    return call.memory.history(id)


@one.add("POST", "/feedback", "UseOut", 404, 507)
def give_feedback(call: Call, id: QuotedId, body: FeedbackBody) -> Any:
    "Say that a memory was used, and how it went. A rule that misled too often is held."
    call.memory.feedback(id, helped=body.helped, failed=body.failed, used=body.used, query=body.query)
    found = call.memory.get(id)
    return {"id": found.id, "success": found.success, "failure": found.failure, "access_count": found.access_count}


@one.add("POST", "/explain", "ExplanationOut", 404, right="read")
def explain_memory(call: Call, id: QuotedId, body: ExplainBody) -> Any:
    "Why this memory is found for a question, or why not."
    return call.memory.explain(body.query, id, **body.filters.given())


@links.add("GET", "", "EdgesOut", 404)
def list_links(call: Call, id: QuotedId) -> Any:
    "Return the links from and to a memory, strongest first."
    return {"items": [asdict(edge) for edge in call.memory.links(id)]}


def _link(memory: Memory, src: str, dst: str, relation: str, weight: float) -> dict[str, Any]:
    memory.link(src, dst, relation, weight)
    return asdict(Edge(memory.get(src).id, memory.get(dst).id, read_label(relation, "relation"), weight))


@links.add("POST", "", "EdgeOut", 404, 507, status=201)
def create_link(call: Call, id: QuotedId, body: LinkBody) -> Any:
    "Link a memory to another one; a link of this type that is there gets the new weight."
    return _link(call.memory, id, body.target, body.relation, body.weight)


@links.add("PUT", "/{target}", "EdgeOut", 404, 507)
def put_link(call: Call, id: QuotedId, target: QuotedId, body: LinkWeightBody) -> Any:
    "Link two memories, or set the weight of their link. The same request again changes nothing."
    return _link(call.memory, id, target, body.relation, body.weight)


@links.add("DELETE", "/{target}", "UnlinkedOut", 404, 507)
def delete_link(call: Call, id: QuotedId, target: QuotedId, relation: Annotated[Name | None, Query(
        description="Only the link of this type; without it, whatever links them", examples=["supports"])] = None) -> Any:
    "Remove the links between two memories, and say how many there were."
    return {"removed": call.memory.unlink(id, target, relation)}


@everything.add("GET", "/audit", "AuditOut", 404, right="admin")
def audit(call: Call, query: Annotated[str | None, Query(max_length=10_000, examples=["치과"], description=(
        "What answered it then, and answers whose question holds each of its words"))] = None,
          id: Annotated[Name | None, Query(description="A memory: its version then, and answers that held it",
                                            examples=["dentist"])] = None,
          when: Annotated[Time | None, Query(description="A moment, or a day: its end. Without it, now", examples=["2026-05-08"])] = None,
          k: Count = 20) -> Any:
    "Return what was believed at a moment, and what had been served by then: to whom, in which version, with which score. Needs admin."
    return call.memory.audit(when, query, id, k)


@talks.add("POST", "", "ConversationOut", 409, 507, status=201, span="memory.add_conversation")
def add_conversation(call: Call, body: ConversationBody) -> Any:
    """Store turns of a conversation, in order, in one transaction; a session that is there is continued. A turn that states what a
    person has rejected, or that has no words, is left out, and named."""
    turns, common = [turn.fields() for turn in body.turns], {"tags": body.tags} if body.tags else {}
    stored = call.memory.add_conversation(turns, body.session, history=body.history, **common, provenance=call.provenance)
    session = (stored[0].session if stored else body.session) or ""  # none is left where all were deleted
    refused = [{"turn": n, "reason": why} for n, why in stored.refused.items()]
    return json_response({"session": session, "items": [memory_dict(r) for r in stored], **({"refused": refused} if refused else {})}, 201,
                         {"Location": f"/v1/conversations/{quote(session, safe='')}"})


@talks.add("GET", "/{session}", "ConversationPageOut", 404)
def get_conversation(call: Call, session: QuotedId, k: Count = 100, cursor: Cursor = None) -> Any:
    "Return the last turns of a conversation, in order; with a cursor, those before."
    page = call.memory.list(k, cursor=cursor, session=session)
    if not page and cursor is None:
        raise NotFound(f"There is no conversation {session[:60]!r} in namespace {call.caller.namespace!r}.", "Check its name.")
    return {"session": page[0].session if page else session, "items": [memory_dict(r) for r in reversed(page)],
            "next_cursor": page.next_cursor}
