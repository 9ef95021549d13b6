"""What the server takes and gives, with types: the contract that its OpenAPI page shows.

A field that a request does not have in its schema is an error, not a hint to guess from: a misspelt `slot` would
otherwise search everywhere, and a misspelt `tags` would store a memory without any. Answers are written as they are,
not validated at each request, which would take longer than the search; the tests validate them, with requests made
from the contract.
"""

import json
from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

MAX_QUESTION = 10_000  # characters: longer is a document, not a question
MAX_EXTRA = 65_536  # characters of a memory's `extra`, as JSON: it is stored in the row and sent with each hit
MAX_DEPTH = 20  # levels of objects and lists in `extra`


def bounded_extra(value: dict[str, Any],  # JSON object that a caller keeps with a memory
                  ) -> dict[str, Any]:
    "Return the same object. Raises `ValueError` when it is too large or too deep."
    level: list[Any] = [value]
    depth = 0
    while level:
        depth += 1
        if depth > MAX_DEPTH:
            raise ValueError(f"it is more than {MAX_DEPTH} levels deep")
        level = [x for v in level for x in (v.values() if isinstance(v, dict) else v) if isinstance(x, dict | list)]
    if len(json.dumps(value, ensure_ascii=False)) > MAX_EXTRA:
        raise ValueError(f"it is longer than {MAX_EXTRA:,} characters of JSON")
    return value


Label = Annotated[str, Field(min_length=1, max_length=512)]
Slot = Literal["A", "B", "C"]
Time = Annotated[str, Field(description="ISO 8601: 2026-01-31, or 2026-01-31T09:00:00Z", max_length=64)]
Question = Annotated[str, Field(min_length=1, max_length=MAX_QUESTION, description="In any language, as a person would ask it")]
Count = Annotated[int | None, Field(ge=1, le=1000, description="How many memories at most")]
CountAlias = Annotated[int | None, Field(ge=1, le=1000, description="Another name of k")]


Extra = Annotated[dict[str, Any], AfterValidator(bounded_extra)]


class RequestModel(BaseModel):
    "The body of a request: unknown fields are refused, and numbers are numbers."

    model_config = ConfigDict(extra="forbid", strict=True)


class FilterFields(RequestModel):
    "Which memories count. What is left out does not restrict."

    tags: list[Label] = Field(default=[], max_length=100)  # only memories with these
    match: Literal["all", "any"] = "all"  # must all of `tags` be there, or any?
    category: Label | None = None  # only of this category
    kind: Label | None = None  # block, rule, strategy …
    status: Label | list[Label] | None = None  # default: hot and ltm; 'any' for all
    session: Label | None = None  # only from this conversation
    speaker: Label | None = None  # only said by this speaker
    role: Label | None = None  # only said in this role
    since: Time | None = None  # said or true from then on
    until: Time | None = None  # said or true before
    valid_at: Time | None = None  # true in the world at that moment
    as_of: Time | None = None  # as the store knew it then

    def given(self) -> dict[str, Any]:
        "Return the filters as `Memory.search` takes them."
        found = self.model_dump(exclude_none=True, exclude={"match", "tags"})
        return found | ({"tags": self.tags, "match": self.match} if self.tags else {})


def one_count(k: int | None,      # number of results
              top_k: int | None,  # the same under its other name
              ) -> int | None:
    "Return the number that was given under one of two names. Raises `ValueError` when they differ."
    if None not in (k, top_k) and k != top_k:
        raise ValueError("k and top_k are two names of one number, and these differ")
    return k if k is not None else top_k


class RecallBody(RequestModel):
    "A question to what is in mind."

    q: Question
    k: Count = None
    top_k: CountAlias = None
    filters: FilterFields = FilterFields()  # which memories count

    @model_validator(mode="after")
    def _one_number(self) -> "RecallBody":
        one_count(self.k, self.top_k)
        return self

    def count(self) -> int | None:
        "Return the number of results; None: the setting search_k."
        return one_count(self.k, self.top_k)


class SearchBody(RequestModel):
    "A question, asked of everything or near an anchor."

    q: Question
    k: Count = None
    top_k: CountAlias = None
    filters: FilterFields = FilterFields()  # which memories count
    slot: Literal["A", "B", "C", "auto"] | None = Field(default=None, description="Search near this anchor; auto: the one that fits best")
    radius: int | None = Field(default=None, ge=0, le=3, description="How many links from the anchor; 0: the anchor itself")
    fallback: bool = Field(default=True, description="Answer from the whole store, and say what of it is near; false: only what is near")
    min_score: float | None = Field(default=None, ge=0, le=1, description="Least relevance; none: nothing if the best is below the floor")

    @model_validator(mode="after")
    def _consistent(self) -> "SearchBody":
        one_count(self.k, self.top_k)
        if self.slot is None and (self.radius is not None or not self.fallback):
            raise ValueError("radius and fallback are about a slot, and there is none")
        return self

    def count(self) -> int | None:
        "Return the number of results; None: the setting search_k."
        return one_count(self.k, self.top_k)


class Policy(RequestModel):
    "How a new memory is linked to those near it."

    link_k: int | None = Field(default=None, ge=0, le=1000, description="Links at most")
    min_w: float | None = Field(default=None, ge=0, le=1, description="The least weight of a link")


class WriteBody(RequestModel):
    "A memory to be stored."

    text: str = Field(min_length=1, description="The words, kept exactly")
    slot: Literal["A", "B", "C", "auto"] | None = Field(default=None, description="Link it near this anchor, which moves to it")
    policy: Policy | None = Field(default=None, description="With a slot: how it is linked")
    id: Label | None = None  # of your own; default: a fresh one
    tags: list[Label] = Field(default=[], max_length=100)  # for filters
    category: Label | None = None  # fact, preference, experience …
    title: str | None = None  # a short title
    summary: str | None = None  # one or two sentences, for when space is short
    session: Label | None = None  # the conversation it belongs to
    speaker: Label | None = None  # who said it
    role: Label | None = None  # user, assistant, tool …
    reply_to: Label | None = None  # id of the memory it answers
    valid_from: Time | None = None  # when it was said or became true
    valid_to: Time | None = None  # when it stops being true
    pinned: bool = False  # never forgotten
    extra: Extra = {}  # anything else the caller keeps with it

    @model_validator(mode="after")
    def _policy_has_slot(self) -> "WriteBody":
        if self.policy is not None and self.slot is None:
            raise ValueError("policy is about a slot, and there is none")
        return self

    def fields(self) -> dict[str, Any]:
        "Return the fields as `Memory.write` takes them, without slot and policy."
        found = self.model_dump(exclude_none=True, exclude={"text", "slot", "policy"})
        return {name: value for name, value in found.items() if value not in ([], {}, False)}


class AnchorBody(RequestModel):
    "What is to change about an anchor."

    anchor_block_id: Label | None = Field(default=None, description="Put it at this memory; also one that is pinned")
    pinned: bool | None = Field(default=None, description="Keep it where it is, or let searches move it")
    hop_budget: int | None = Field(default=None, ge=1, le=3, description="How far a search at this anchor walks, in links")

    @model_validator(mode="after")
    def _something(self) -> "AnchorBody":
        if not self.model_fields_set - {n for n in self.model_fields_set if getattr(self, n) is None}:
            raise ValueError("there is nothing to change: give anchor_block_id, pinned or hop_budget")
        return self


class MemoryOut(BaseModel):
    "A memory. Fields without a value are left out."

    model_config = ConfigDict(extra="allow")
    id: str  # unique in its namespace
    kind: str  # block, rule, strategy …
    text: str  # the words themselves
    status: str  # hot, ltm, held or archived
    version: int  # 1, 2, 3 …
    created_at: str  # recorded: first version
    updated_at: str  # recorded: this version
    valid_from: str  # true in the world from here
    tags: list[str] = []  # sorted


class HitOut(BaseModel):
    "A memory that was found, and why."

    rank: int  # 1 is best
    relevance: float | None = None  # probability that it answers the question; none: not known
    score: float  # the sum of the parts
    parts: dict[str, float]  # column, cue or similarity → its share of the score
    terms: dict[str, float]  # word of the question → its share
    passage: dict[str, Any]  # the sentences that hold most of what was asked: text, and start and end of it in the memory's text
    layer: str = "index"  # what found it
    hops: int | None = None  # links walked to it
    path: list[str] = []  # ids on that way, from the anchor
    memory: MemoryOut  # whole


class SearchOut(BaseModel):
    "What a search found, best first."

    query: str  # as it was asked
    namespace: str  # where it was asked
    source: Literal["index", "full text", "building"]  # while a large index is being built, full text; without fallback, building: no hits
    ranked_by: str  # what a learned ranker was trained on; empty for the usual mix
    hits: list[HitOut]  # best first
    search_time_ms: float  # in the store; without the way here and back


class RecallOut(BaseModel):
    "What came to mind, best first, and which layer knew it."

    query: str  # as it was asked
    namespace: str  # where it was asked
    source: Literal["working_memory", "cache", "checkpoint", "ltm_fallback"]  # the layer that answered; the last: a search of everything
    ranked_by: str  # what a learned ranker was trained on; empty for the usual mix
    results: list[HitOut]  # best first
    result_count: int  # how many
    search_time_ms: float | None  # in the layers, without the model's; null for the past, and while a large index is being built


ANCHOR_FIELDS = ("slot", "summary", "pinned", "hop_budget", "uses", "failures", "in_use")  # named alike in the state of an anchor


class AnchorOut(BaseModel):
    "A place of attention, and where it stands."

    slot: Slot  # its name
    anchor_block_id: str | None  # the memory it stands at
    summary: str  # of that memory, its beginning
    pinned: bool  # it does not move by itself
    hop_budget: int  # links that a search walks from it
    uses: int  # searches and writes that went through it
    failures: int  # searches in a row that found nothing near it
    in_use: bool  # it was used last


class AnchorsOut(BaseModel):
    "All three anchors of a namespace."

    slots: list[AnchorOut]  # A, B, C


class NodeOut(BaseModel):
    "A memory in a neighbourhood."

    id: str  # of the memory
    text: str  # its beginning
    kind: str  # block, rule, strategy …
    valid_from: str  # said, or true, from then on
    hops: int  # links from the centre, on the shortest way


class LinkOut(BaseModel):
    "A link between two of them."

    source: str  # id
    target: str  # id
    weight: float  # in [0, 1]
    origin: str  # what made it: sim, time, tag, write, user


class NeighboursOut(BaseModel):
    "What is around a memory."

    center: str  # its id
    nodes: list[NodeOut]  # nearest first, the centre itself among them
    links: list[LinkOut]  # strongest first
    cut: bool  # there is more than is shown


class TimelineItem(BaseModel):
    "A memory on the time line."

    id: str  # of the memory
    at: str  # said, or true, from then on
    text: str  # its beginning
    kind: str  # block, rule, strategy …
    tags: list[str]  # sorted
    session: str | None = None  # the conversation it belongs to
    speaker: str | None = None  # who said it, by name or role


class TimelineOut(BaseModel):
    "What was remembered, latest first."

    moments: list[TimelineItem]  # latest first
    more: bool  # there are older ones


class HealthOut(BaseModel):
    "Whether the server lives, and whether its store answers."

    live: bool  # it answers
    ready: bool  # and so does its store


class ProblemOut(BaseModel):
    "An error, as RFC 9457 has it."

    title: str  # of this kind of error
    status: int  # of HTTP
    detail: str = ""  # what was wrong with this request
    hint: str = ""  # what to do about it
    errors: list[dict[str, str]] = []  # field by field: where, what


WITHOUT_TOKEN = (403, 408, 413, 414, 421, 500, 503)  # errors that any request may be answered with
WITH_TOKEN = (*WITHOUT_TOKEN, 400, 401, 415, 422, 429)  # errors of a route that needs a token


def problem_responses(*statuses: int,                       # status codes of errors, beside those that every such route has
                      basis: Sequence[int] = WITH_TOKEN,  # status codes that every such route has
                      ) -> dict[int | str, dict[str, Any]]:
    "Return the errors of a route, as FastAPI declares them."
    content = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/ProblemOut"}}}
    return {s: {"description": "An error", "content": content} for s in (*basis, *statuses)}


def error_location(path: Sequence[object],  # location of an error as pydantic has it: 'body', 'filters', 'tags', 0
                   ) -> str:
    "Return the place of an error in what was sent, such as filters.tags.0."
    return ".".join(str(p) for p in path[1:])[:200]
