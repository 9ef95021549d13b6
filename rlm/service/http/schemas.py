"""What the server takes, with types, descriptions and examples: the contract that its OpenAPI page shows.

A field that a request does not have in its schema is an error, not a hint to guess from: a misspelt `slot` would
otherwise search everywhere, and a misspelt `tags` would store a memory without any. What the server gives is in
`rlm/data/answers.yaml`, as JSON Schema: answers are written as they are, not validated at each request, which would take longer than
the search; the tests hold them to it.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, AliasChoices, BaseModel, ConfigDict, Field, GetJsonSchemaHandler, model_validator

from rlm.service.input_parsing import BESIDE_WORDS, TURN_NAMES

from .errors import TITLES

MAX_QUESTION = 10_000  # characters: longer is a document, not a question
MAX_EXTRA = 65_536  # characters of a memory's `extra`, as JSON: it is stored in the row and sent with each hit
MAX_DEPTH = 20  # levels of objects and lists in `extra`
MAX_TURNS = 5000  # turns or lines of one request, which are stored in one transaction


def _bounded_extra(value: dict[str, Any]) -> dict[str, Any]:
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


def about(description: str,  # description of a property in the OpenAPI page
          example: Any,      # one value that it may have
          **more: Any,       # default and limits, as pydantic's `Field` takes them
          ) -> Any:
    "Return the declaration of a property, with its description and an example."
    return Field(description=description, examples=[example], **more)


def _optional(description: str, example: Any) -> Any:
    "Return the declaration of a property that may be left out, and has no value then."
    def without_default(schema: dict[str, Any]) -> None:
        schema.pop("default", None)
    return Field(default=None, description=description, examples=[example], json_schema_extra=without_default)


Label = Annotated[str, Field(min_length=1, max_length=512)]
Slot = Literal["A", "B", "C"]
AnySlot = Literal["A", "B", "C", "auto"]
Kind = Literal["block", "rule", "strategy"]
Status = Literal["hot", "ltm", "held", "archived"]
Time = Annotated[str, Field(description="ISO 8601: 2026-01-31, or 2026-01-31T09:00:00Z", max_length=64)]
Tags = Annotated[list[Label], Field(max_length=100)]
Text = Annotated[str, Field(min_length=1)]
Question = Annotated[str, Field(min_length=1, max_length=MAX_QUESTION)]
Extra = Annotated[dict[str, Any], AfterValidator(_bounded_extra)]
QUERY: Any = about("The question, in any language, as a person would ask it; `q` is another name of it", "치과는 언제 가?",
                   validation_alias=AliasChoices("query", "q"))
K: Any = about("How many memories at most; without it, the setting search_k; `top_k` is another name of it", 5, default=None, ge=1, le=1000,
               validation_alias=AliasChoices("k", "top_k"))


class RequestModel(BaseModel):
    "The body of a request: unknown fields are refused, and numbers are numbers."

    model_config = ConfigDict(extra="forbid", strict=True, populate_by_name=True)

    @classmethod
    def __get_pydantic_json_schema__(cls, core: Any, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        "Return the schema with a field's other names as fields of their own: one of them is enough."
        found = handler.resolve_ref_schema(handler(core))
        for field in cls.model_fields.values():
            if isinstance(names := field.validation_alias, AliasChoices):
                first, *others = map(str, names.choices)
                found["properties"] |= {n: found["properties"][first] | {"description": f"Another name of {first}"} for n in others}
                if first in found.get("required", ()):
                    found["required"].remove(first)
                    found["oneOf"] = [{"required": [n]} for n in (first, *others)]
        return found


class FilterFields(RequestModel):
    "Which memories count. What is left out does not restrict."

    tags: Tags = about("Only memories with these tags", ["health"], default=[])
    match: Literal["all", "any"] = about("Must all of `tags` be there, or is one enough?", "all", default="all")
    category: Label | None = about("Only of this category", "fact", default=None)
    kind: Label | None = about("Only of this kind: block, rule or strategy", "block", default=None)
    status: Label | list[Label] | None = about("Only of this status, or one of several; any: all. Usual: hot, ltm", "hot", default=None)
    session: Label | None = about("Only from this conversation", "2026-05-08", default=None)
    speaker: Label | None = about("Only said by this speaker", "Mina", default=None)
    role: Label | None = about("Only said in this role", "user", default=None)
    since: Time | None = about("Only what was said, or became true, from this time on", "2026-01-31", default=None)
    until: Time | None = about("Only what was said, or became true, before this time", "2026-02-28", default=None)
    valid_at: Time | None = about("Only what was true at this time, by what is known now", "2026-02-01", default=None)
    as_of: Time | None = about("What the store knew at this time, right or wrong, also superseded or deleted", "2026-02-01T09:00:00Z",
                               default=None)

    __hash__ = object.__hash__  # pydantic copies a default that can't be hashed for each request

    def given(self) -> dict[str, Any]:
        "Return the filters as `Memory.search` takes them."
        found = self.model_dump(exclude_none=True, exclude={"match", "tags"})
        return found | ({"tags": self.tags, "match": self.match} if self.tags else {})


FILTERS: Any = about("Which memories count", {"tags": ["health"], "since": "2026-01-01"}, default=FilterFields())


class RecallBody(RequestModel):
    "A question to working memory, and to the rest where that is not enough."

    query: Question = QUERY
    k: int | None = K
    filters: FilterFields = FILTERS


CONTEXT: Any = about("With a slot: a conversation that has anchors of its own; without it, those of the namespace", "chat-7", default=None)


class SearchBody(RequestModel):
    "A question, asked of everything or near an anchor."

    query: Question = QUERY
    k: int | None = K
    filters: FilterFields = FILTERS
    slot: AnySlot | None = about("Search near this anchor; auto: the one that fits best", "auto", default=None)
    radius: int | None = about("How many links from the anchor; 0: the anchor itself", 2, default=None, ge=0, le=3)
    fallback: bool = about("Answer from the whole store, and say what of it is near; false: only what is near", True, default=True)
    min_score: float | None = about("Least relevance; without it, nothing if the best is below the floor", 0.2, default=None, ge=0, le=1)
    context: Label | None = CONTEXT

    @model_validator(mode="after")
    def _consistent(self) -> "SearchBody":
        if self.slot is None and (self.radius is not None or not self.fallback or self.context is not None):
            raise ValueError("radius, context and fallback are about a slot, and there is none")
        return self


class ExplainBody(RequestModel):
    "A question for which it is to be explained why a memory is found, or why not."

    query: Question = QUERY
    filters: FilterFields = FILTERS


class Policy(RequestModel):
    "How a new memory is linked to those near it."

    link_k: int | None = about("Links at most", 8, default=None, ge=0, le=1000)
    min_w: float | None = about("The least weight of a link", 0.35, default=None, ge=0, le=1)


TEXT: Any = about("The words, kept exactly", "다음 주 화요일에 치과 예약이 있어")
TAGS: Any = about("Tags, for filters", ["health"], default=[])
EXTRA: Any = about(f"Whatever else the caller keeps with it: a JSON object of at most {MAX_EXTRA:,} characters", {"page": 3}, default={})


def _field_values(body: BaseModel, *left_out: str) -> dict[str, Any]:
    "Return the fields of a memory that were given, those at their default left out."
    return {n: v for n, v in body.model_dump(exclude_none=True, exclude=set(left_out)).items() if v not in ([], {}, False)}


class WriteBody(RequestModel):
    "A memory to be stored."

    text: Text = TEXT
    slot: AnySlot | None = about("Link it near this anchor, which moves to it", "auto", default=None)
    policy: Policy | None = about("With a slot: how it is linked", {"link_k": 8, "min_w": 0.35}, default=None)
    context: Label | None = CONTEXT
    id: Label | None = about("An id of your own; without it, a fresh one is made", "dentist", default=None)
    tags: Tags = TAGS
    category: Label | None = about("A word of your own: fact, preference, experience …", "fact", default=None)
    title: str | None = about("A short title", "Dentist", default=None)
    summary: str | None = about("One or two sentences, for when space is short", "Dentist on Tuesday.", default=None)
    session: Label | None = about("The conversation it belongs to", "2026-05-08", default=None)
    speaker: Label | None = about("Who said it", "Mina", default=None)
    role: Label | None = about("In which role: user, assistant, system, developer, tool or function", "user", default=None)
    reply_to: Label | None = about("The id of the memory it answers", "question-1", default=None)
    valid_from: Time | None = about("When it was said or became true; without it, now", "2026-05-08T09:00:00Z", default=None)
    valid_to: Time | None = about("When it stops being true", "2026-05-13", default=None)
    pinned: bool = about("Never forgotten", False, default=False)
    extra: Extra = EXTRA

    @model_validator(mode="after")
    def _policy_has_slot(self) -> "WriteBody":
        if self.slot is None and (self.policy is not None or self.context is not None):
            raise ValueError("policy and context are about a slot, and there is none")
        return self

    def fields(self) -> dict[str, Any]:
        "Return the fields as `Memory.write` takes them, without slot, policy and context."
        return _field_values(self, "text", "slot", "policy", "context")


class PatchBody(RequestModel):
    "What is to change about a memory. What is left out stays; null takes a value away (RFC 7396)."

    text: Text = _optional("The new words", "치과 예약은 수요일이야")
    formal: Text | None = _optional("Of a rule: its condition and outcome", "when hour < 12 then drink = 'tea'")
    tags: Tags = _optional("All tags from now on", ["health", "moved"])
    category: Label | None = _optional("Another category", "fact")
    title: Label | None = _optional("Another title", "Dentist")
    summary: Text | None = _optional("Another summary", "Dentist on Wednesday.")
    speaker: Label | None = _optional("Who said it", "Mina")
    role: Label | None = _optional("In which role", "user")
    status: Status = _optional("hot, ltm, held or archived", "archived")
    valid_from: Time = _optional("When it was said or became true", "2026-05-08T09:00:00Z")
    valid_to: Time | None = _optional("When it stops being true", "2026-05-13")
    pinned: bool = _optional("Never forgotten", True)
    extra: Extra = _optional("All of `extra` from now on: it is replaced as a whole", {"page": 4})

    @model_validator(mode="after")
    def _something(self) -> "PatchBody":
        if not self.model_fields_set:
            raise ValueError("there is nothing to change: give at least one field")
        return self

    def changes(self) -> dict[str, Any]:
        "Return the fields and their new values, as `Memory.update` takes them."
        return self.model_dump(exclude_unset=True)


def _turn_names(field: str) -> AliasChoices:
    "Return the names under which a turn may give a field."
    return AliasChoices(field, *(name for name, ours in TURN_NAMES.items() if ours == field))


class TurnBody(RequestModel):
    """A turn of a conversation, or a message as chat APIs have it, of which one without words is passed over.

    What such a message has besides, as `refusal` and `annotations`, is left out. `created_at`, `time` and `name` are read, too."""

    text: str | list[dict[str, Any]] | None = about("The words; parts that hold them; or null, where nothing is said", "치과는 언제 가?",
                                                    validation_alias=_turn_names("text"), default=None)
    speaker: Label | None = about("Who said it, by name", "Mina", default=None, validation_alias=_turn_names("speaker"))
    role: Label | None = about("In which role: user, assistant, system, developer, tool or function", "user", default=None)
    valid_from: Time | float | None = about("When it was said; also seconds since 1970", "2026-05-08T09:00:00Z", default=None,
                                            validation_alias=_turn_names("valid_from"))
    tool_calls: list[dict[str, Any]] | None = about("Tools that the assistant calls", [{"function": {"name": "weather"}}], default=None)
    tool_call_id: str | None = about("The call that a tool answers", "call_1", default=None)
    function_call: dict[str, Any] | None = about("The call of a function, in earlier APIs", {"name": "weather"}, default=None)
    id: Label | None = about("An id of your own; without it, a fresh one is made", "turn-1", default=None)
    reply_to: Annotated[int, Field(ge=0)] | Label | None = about("The turn it answers: its place in this list, from 0, or its id", 0,
                                                                 default=None)
    tags: Tags = TAGS
    extra: Extra = EXTRA

    @model_validator(mode="before")
    @classmethod
    def _without_more(cls, given: Any) -> Any:
        return {n: v for n, v in given.items() if n not in BESIDE_WORDS} if isinstance(given, dict) else given

    @model_validator(mode="after")
    def _with_words(self) -> "TurnBody":
        if "text" not in self.model_fields_set and not (self.tool_calls or self.function_call):
            raise ValueError("it has no text: give text or content, which may be null")
        return self

    def fields(self) -> dict[str, Any]:
        "Return the turn as `Memory.add_conversation` takes it."
        found = {"text": self.text} | _field_values(self, "text")
        return found if self.reply_to is None else found | {"reply_to": self.reply_to}  # 0 is a place, not a default


class ConversationBody(RequestModel):
    "Turns of one conversation, in order: they are stored together, or not at all."

    turns: list[TurnBody] = about("Turns, in order", [{"speaker": "Mina", "text": "치과는 언제 가?"}, {"text": "화요일"}],
                                  min_length=1, max_length=MAX_TURNS)
    session: Label | None = about("The conversation; one that is there is continued. Without it, a new one", "2026-05-08", default=None)
    tags: Tags = about("Tags of each turn that has none of its own", ["health"], default=[])
    history: bool = about("Whether the turns are what a program holds of the conversation, and it may have trimmed or edited it", False,
                          default=False)


class RememberBody(RequestModel):
    "A conversation that is read for what is worth keeping."

    turns: list[TurnBody] = about("Turns, in order", [{"role": "user", "content": "My sister Mina lives in Jeju."}],
                                  min_length=1, max_length=MAX_TURNS)
    use_model: bool = about("Whether the language model that the server is configured with reads it; otherwise rules do", False,
                            default=False)


class LinkBody(RequestModel):
    "A link to another memory."

    target: Label = about("The id of the memory that the link leads to", "street")
    relation: Label = about("Its type, a word of your own: similar, supports, likes …", "supports", default="related")
    weight: float = about("Its weight", 0.8, default=1.0, ge=0, le=1, strict=False)


class LinkWeightBody(RequestModel):
    "A link whose ends the address names."

    relation: Label = about("Its type, a word of your own: similar, supports, likes …", "supports", default="related")
    weight: float = about("Its weight", 0.8, default=1.0, ge=0, le=1, strict=False)


class FeedbackBody(RequestModel):
    "How a memory did. The numbers are added to its counters."

    helped: int = about("Times it helped", 1, default=0, ge=0, le=1_000_000)
    failed: int = about("Times it misled", 0, default=0, ge=0, le=1_000_000)
    used: int = about("Times it was used", 1, default=1, ge=0, le=1_000_000)
    query: Question | None = about("The question it was found for, which `rlm train-ranker` learns from", "치과는 언제 가?", default=None)


class AnchorBody(RequestModel):
    "What is to change about an anchor."

    anchor_block_id: Label | None = about("Put it at this memory; also one that is pinned", "street", default=None)
    pinned: bool | None = about("Keep it where it is, or let searches move it", True, default=None)
    hop_budget: int | None = about("How far a search at this anchor walks, in links", 2, default=None, ge=1, le=3)

    @model_validator(mode="after")
    def _something(self) -> "AnchorBody":
        if not self.model_fields_set - {n for n in self.model_fields_set if getattr(self, n) is None}:
            raise ValueError("there is nothing to change: give anchor_block_id, pinned or hop_budget")
        return self


class RuleBody(RequestModel):
    "A rule to be stored: its words, its formal side, or both."

    expr: Text | None = about("The rule in words; without it, the formal side is its words", "아침에는 차를 마신다", default=None)
    formal: Text | None = about("Its condition and outcome: `when … then …`", "when hour < 11 then drink = 'tea'", default=None)
    rule_id: Label | None = about("An id of your own; without it, a fresh one is made", "tea", default=None)
    tags: Tags = about("Words to choose it by", ["drink"], default=[])
    valid_from: Time | None = about("From when it is applied; without it, from now on", "2026-05-08T09:00:00Z", default=None)
    valid_to: Time | None = about("Until when it is applied", "2027-05-08", default=None)
    pinned: bool = about("Never archived for its age", False, default=False)

    @model_validator(mode="after")
    def _something(self) -> "RuleBody":
        if self.expr is None and self.formal is None:
            raise ValueError("a rule needs its words (expr) or its formal side (formal)")
        return self

    def fields(self) -> dict[str, Any]:
        "Return the fields as `RuleStore.add_rule` takes them."
        return _field_values(self)


class RuleUseBody(RequestModel):
    "How often a rule helped, and how often it misled."

    helped: int = about("How often it helped", 1, default=0, ge=0, le=1_000_000)
    failed: int = about("How often it misled", 0, default=0, ge=0, le=1_000_000)


class JudgeBody(RequestModel):
    "Whether the decision of a recorded conflict was right."

    conflict: str = about("Id of a conflict of the log, or last", "last", min_length=1, max_length=200)
    verdict: Literal["right", "wrong", "unknown"] = about("Right and wrong count as a use of the rules that were followed", "right")


class RuleTableBody(RequestModel):
    "A decision table, whose rows become rules."

    table: str = about("The table as CSV; its first cell names the hit policy", 'unique,when hour,then drink\n1,< 11,"""tea"""\n',
                       max_length=1_000_000)


class ReasonBody(RequestModel):
    "Why a person decides so."

    reason: str = about("Why, for the history", "asked Mina", default="", max_length=10_000)


def json_schema(name: str,                       # name of a schema of `answers.yaml`
                kind: str = "application/json",  # media type
                ) -> dict[str, Any]:
    "Return the content of an answer as OpenAPI declares it."
    return {kind: {"schema": {"$ref": f"#/components/schemas/{name}"}}}


WITHOUT_TOKEN = (403, 408, 413, 414, 421, 429, 500, 503)  # errors that any request may be answered with
WITH_TOKEN = (*WITHOUT_TOKEN, 400, 401, 415, 422)  # errors of a route that needs a token


def problem_responses(*statuses: int,                       # status codes of errors, beside those that every such route has
                      basis: Sequence[int] = WITH_TOKEN,  # status codes that every such route has
                      ) -> dict[int | str, dict[str, Any]]:
    "Return the errors of a route, as FastAPI declares them."
    content = json_schema("ProblemOut", "application/problem+json")
    return {s: {"description": TITLES[s], "content": content} for s in sorted({*basis, *statuses})}


def answers(name: str,                            # name of a schema of `answers.yaml`
            *statuses: int,                       # status codes of errors, beside those that every such route has
            status: int = 200,                    # status code of the answer
            basis: Sequence[int] = WITH_TOKEN,    # status codes that every such route has
            more: Mapping[Any, Any] = {},           # further answers, as FastAPI declares them
            ) -> dict[str, Any]:
    "Return the arguments that declare what a route answers."
    made = {status: {"content": json_schema(name)}}
    return {"status_code": status, "responses": problem_responses(*statuses, basis=basis) | made | dict(more)}


def error_location(path: Sequence[object],  # location of an error as pydantic has it: 'body', 'filters', 'tags', 0
                   ) -> str:
    "Return the place of an error in what was sent, such as filters.tags.0."
    return ".".join(str(p) for p in path[1:])[:200]


Fact = bool | int | float | str | None


class ContextBody(RequestModel):
    "What a prompt is about, and what its block of memories may cost."

    query: Question = QUERY
    tokens: int = about("What the block may cost, all of it", 512, default=1024, ge=1, le=100_000)
    apart_from: Label | None = about("A conversation whose turns the prompt holds already: they are left out", "2026-05-08", default=None)
    least: float = about("Relevance that a memory must have, where it is known", 0.05, default=0.0, ge=0, le=1)
    facts: dict[Label, Fact] = about("What is known of the situation, for the rules: name → truth value, number or text", {"hour": 9},
                                     default={}, max_length=1000)


class ObserveBody(RequestModel):
    "A prompt that a person gave to a model."

    text: Text = about("The prompt", "We use tabs, not spaces, in this repo.")
    session: Label | None = about("The conversation it is part of: it may answer what the last stored turn of that asks", "evening",
                                  default=None)


class PolicyBody(RequestModel):
    "A turn, and what to teach the policy about it."

    text: Text = about("The turn", "We use tabs, not spaces, in this repo.")
    session: Label | None = about("The conversation it is part of: it may answer what the last stored turn of that asks", "evening",
                                  default=None)
    feedback: Annotated[float, Field(ge=-1, le=1)] | Annotated[str, Field(min_length=1, max_length=MAX_QUESTION)] | None = about(
        "How right the decision is, from -1 to 1; `save` or `skip`: what is right; or what the person said next. Without it nothing is "
        "changed; with it the right to write is needed", "skip", default=None)


class ApplyBody(RequestModel):
    "A situation that rules are applied to."

    facts: dict[Label, Fact] = about("Name → truth value, number or text; null for what is not known", {"hour": 9, "meeting": True},
                                     max_length=1000)
    tags: Tags = about("Only rules with these tags", ["drinks"], default=[])
    match: Literal["all", "any"] = about("Must all of `tags` be there, or is one enough?", "all", default="all")
    resolve: bool = about("Whether to decide where rules disagree", True, default=False)
    record: bool = about("Whether to decide, and write that into the log of conflicts; it takes the right to write", False, default=False)


class ProposeBody(RequestModel):
    "A memory that is said to be wrong."

    id: Label = about("Id of the memory", "3066901354f1")
    reason: Annotated[str, Field(max_length=1000)] = about("Why, in a few words", "I have never lived in Seoul.", default="")


Words = Annotated[str, Field(min_length=1, max_length=1000)]


class AcceptBody(RequestModel):
    "A memory that is right, or is right in other words."

    id: Label = about("Id of the memory", "3066901354f1")
    text: Text | None = about("Other words for it", "I moved to Busan in May.", default=None)


class RejectBody(RequestModel):
    "What is wrong, named in one of three ways: by a memory, by a text, or by a relation and its value."

    id: Label | None = about("Id of a memory, present or deleted: its text, and each fact it states", "3066901354f1", default=None)
    part: Words | None = about("With an id: what is wrong of a memory that is right otherwise", "I live in Seoul.", default=None)
    text: Text | None = about("Words that are wrong: they, and each fact they state", "I live in Seoul.", default=None)
    subject: Words = about("Of a fact: what it is about", "user", default="user")
    relation: Words | None = about("Of a fact: what is said of the subject", "residence", default=None)
    value: Words | None = about("Of a fact: the value that is wrong", "Seoul", default=None)
    reason: Words | None = about("Why, in the person's words", "I have never lived there.", default=None)


class PurgeBody(RequestModel):
    "Which deleted memories are to be erased."

    days: float = about("How long ago the deletion was, at least", 30, ge=0, le=36500)
    dry_run: bool = about("Only tell what would be erased", True, default=False)


class SleepBody(RequestModel):
    "How a namespace is to sleep."

    dry_run: bool = about("Only tell what would be done", True, default=False)
    forget: bool = about("Also archive what is not used; false: only merge, and store missing facts", True, default=True)
