"""What the server gives, with types, descriptions and examples.

Answers are written as they are, not validated at each request, which would take longer than the search; the tests
validate them, with requests made from the contract. A memory, a hit, a history, an explanation and a rule have one
shape, which the command line's `--json` has too.
"""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from .schemas import Kind, Slot, Status, about, optional

WHEN = "2026-05-08T09:00:00.000000Z"
MEMORY = {"id": "dentist", "namespace": "default", "kind": "block", "text": "다음 주 화요일에 치과 예약이 있어", "status": "hot",
          "pinned": False, "immutable": False, "version": 1, "success": 0, "failure": 0, "access_count": 0,
          "created_at": WHEN, "updated_at": WHEN, "valid_from": WHEN, "tags": ["health"]}
NEXT_CURSOR: Any = about("The argument `cursor` of the next page; null: this is the last", "mD3qgNSzvJ8xYc0kTqfZ_w")


class MemoryOut(BaseModel):
    "A memory. Fields without a value are left out."

    model_config = ConfigDict(extra="allow")
    id: str = about("Its id, unique in its namespace", "dentist")
    namespace: str = about("The partition it belongs to", "default")
    kind: Kind = about("block: something said or known; rule: what to do when; strategy: how a task was solved", "block")
    text: str = about("The words, exactly as they were given, credentials taken out", "다음 주 화요일에 치과 예약이 있어")
    title: str = optional("A short title", "Dentist")
    summary: str = optional("One or two sentences", "Dentist on Tuesday.")
    formal: str = optional("Of a rule: its condition and outcome", "when hour < 11 then drink = 'tea'")
    category: str = optional("The caller's own word", "fact")
    source_type: str = optional("Of a strategy: what it was learned from", "success")
    status: Status = about("hot: new; ltm: promoted; held: not applied until a person decides; archived: kept, and not found", "hot")
    pinned: bool = about("Whether it is never forgotten", False)
    immutable: bool = about("Whether it is never changed", False)
    version: int = about("1, 2, 3 …: the entity tag (`ETag`) of the memory, without its quotes", 1)
    success: int = about("How often it helped", 0)
    failure: int = about("How often it misled", 0)
    access_count: int = about("How often it was used", 0)
    confidence: float = optional("How far it is trusted, in [0, 1]", 0.9)
    created_at: str = about("When its first version was recorded", WHEN)
    updated_at: str = about("When this version was recorded", WHEN)
    last_used_at: str = optional("The last use that was reported", WHEN)
    archived_at: str = optional("Since when it is archived", WHEN)
    valid_from: str = about("From when it is true in the world, or when it was said", WHEN)
    valid_to: str = optional("Until when it is true", "2026-05-13T00:00:00.000000Z")
    session: str = optional("The conversation it belongs to", "2026-05-08")
    turn: int = optional("Its place there, from 0", 0)
    speaker: str = optional("Who said it, by name", "Mina")
    role: str = optional("In which role", "user")
    reply_to: str = optional("The id of the memory it answers", "question-1")
    tags: list[str] = optional("Tags, sorted", ["health"])
    scope: dict[str, Any] = optional("Of a strategy: where it applies", {"ontology": "skos"})
    provenance: dict[str, Any] = optional("Where it came from: the door, the token's public name, what the guard marked",
                                       {"source": "rest", "caller": "guest"})
    extra: dict[str, Any] = optional("What else the caller keeps with it", {"page": 3})
    links: dict[str, Any] = optional("Of one memory by its id, where it has links: those linked with it, strongest first",
                                     {"neighbors": [{"id": "street", "w": 0.8}]})
    duplicate: bool = optional("Of the answer to a write: true, these words were known already, and nothing was stored", True)


class MemoriesOut(BaseModel):
    "A page of memories, and where the next one begins."

    items: list[MemoryOut] = about("Memories, newest first", [MEMORY])
    next_cursor: str | None = NEXT_CURSOR


class ConversationOut(BaseModel):
    "Turns of a conversation that were stored just now."

    session: str = about("The conversation", "2026-05-08")
    items: list[MemoryOut] = about("Its turns, in order", [MEMORY])


class ConversationPageOut(BaseModel):
    "The last turns of a conversation, or those before."

    session: str = about("The conversation", "2026-05-08")
    items: list[MemoryOut] = about("Its turns, in order", [MEMORY])
    next_cursor: str | None = about("The argument `cursor` for the turns before these; null: there are none", "mD3qgNSzvJ8xYc0kTqfZ_w")


class DeletedOut(BaseModel):
    "How many memories were deleted, or erased: one of the two is there."

    deleted: int = optional("Taken out of the present; the history stays", 1)
    erased: int = optional("Removed whole, history included", 1)


class HitOut(BaseModel):
    "A memory that was found, and why."

    rank: int = about("Its place; 1 is best", 1)
    score: float = about("The sum of its parts", 0.837)
    relevance: float | None = about("The probability that it answers the question; null: not known", 0.9, default=None)
    parts: dict[str, float] = about("Column, cue or similarity, and its share of the score", {"text": 0.441, "when": 0.264})
    terms: dict[str, float] = about("Word of the question, and its share of the score", {"치과": 0.441})
    shares: dict[str, dict[str, float]] = about("Word of the question, or cue in brackets, and its share of the score by column",
                                                {"치과": {"text": 0.441}, "(when)": {"when": 0.264}})
    passage: dict[str, Any] = about("The sentences that hold most of what was asked: text, and start and end of it in the memory's text",
                                    {"text": "다음 주 화요일에 치과 예약이 있어", "start": 0, "end": 19})
    layer: str = about("What found it: index, history, cache, working memory, checkpoint, anchor A …", "index", default="index")
    hops: int | None = about("Links walked to it; without it, it was not walked to", 1, default=None)
    path: list[str] = about("Ids on that way, from the anchor to this one", ["street", "dentist"], default=[])
    memory: MemoryOut = about("The memory, whole", MEMORY)


HIT = {"rank": 1, "score": 0.441, "relevance": 0.9, "parts": {"text": 0.441}, "terms": {"치과": 0.441},
       "shares": {"치과": {"text": 0.441}}, "layer": "index",
       "path": [], "memory": MEMORY,
       "passage": {"text": MEMORY["text"], "start": 0, "end": 19}}


class SearchOut(BaseModel):
    "What a search found, best first."

    query: str = about("The question, as it was asked", "치과는 언제 가?")
    namespace: str = about("Where it was asked", "default")
    source: Literal["index", "full text", "history", "building"] = about(
        "What answered: the index; the history, of the past (`as_of`); full text, while a large index is being built; "
        "building: nothing, since only what is near was wanted meanwhile", "index")
    ranked_by: str = about("What a learned ranker was trained on; empty for the usual mix", "")
    hits: list[HitOut] = about("Hits, best first", [HIT])
    search_time_ms: float = about("Milliseconds in the store, without the way here and back", 0.4)


class ServedOut(BaseModel):
    "A memory that an answer held."

    memory_id: str = about("Its id", "dentist")
    version: int = about("The version that was served", 1)
    score: float | None = about("Its score; null: it was served without one, such as a pinned memory", 0.837)
    why: dict[str, Any] = about("The parts of the score by column; of a block for a prompt, its resolution, and whether it is pinned",
                                {"parts": {"text": 0.441}})


SERVED = {"memory_id": "dentist", "version": 1, "score": 0.837, "why": {"parts": {"text": 0.441}}}


class LoggedRecallOut(BaseModel):
    "One answer: what was asked, and what was served."

    id: int = about("Its number in the log", 7)
    at: str = about("When it was given", WHEN)
    query: str = about("What was asked, credentials taken out", "치과는 언제 가?")
    door: str = about("The interface: python, cli, rest or mcp", "rest")
    actor: str = about("The id of the token that asked; empty: not known", "t1")
    event: int = about("The number of the store's last event at that moment", 12)
    served: list[ServedOut] = about("Memories, best first", [SERVED])


class AuditOut(BaseModel):
    "What the store held at a moment, and what it had served by then."

    when: str = about("The moment", WHEN)
    believed: list[MemoryOut] = about("Memories as they were then", [MEMORY])
    recalls: list[LoggedRecallOut] = about("Answers up to then, the newest first", [
        {"id": 7, "at": WHEN, "query": "치과는 언제 가?", "door": "rest", "actor": "t1", "event": 12, "served": [SERVED]}])
    history: dict[str, Any] | None = about("Versions and events of the memory that was named, up to then; null: none was named", None)


class RecallOut(BaseModel):
    "What came to mind, best first, and which layer knew it."

    query: str = about("The question, as it was asked", "치과는 언제 가?")
    namespace: str = about("Where it was asked", "default")
    source: Literal["working_memory", "cache", "checkpoint", "ltm_fallback", "history", "full text"] = about(
        "The layer that answered; ltm_fallback: a search of everything; history: of the past; full text: while a large index is being "
        "built", "cache")
    ranked_by: str = about("What a learned ranker was trained on; empty for the usual mix", "")
    results: list[HitOut] = about("Hits, best first", [HIT])
    result_count: int = about("How many", 1)
    search_time_ms: float | None = about("Milliseconds in the layers, without the model's; null for the past, and while a large index is "
                                         "being built", 0.2)


class ExplanationOut(BaseModel):
    "Why a memory is found for a question, or why not."

    query: str = about("The question, as it was asked", "치과는 언제 가?")
    verdict: str = about("In one sentence: whether it is found, where, or why not", "Found at rank 1, score 0.837.")
    rank: int | None = about("Its place among those that passed the filters; null: not found, or below the first 1,000", 1)
    score: float = about("The sum of all parts", 0.837)
    parts: dict[str, dict[str, float]] = about("Word, or cue in brackets; column; its share of the score", {"치과": {"text": 0.441}})
    scale: float = about("How much cues such as the date count, in [0, 1]", 1.0)
    frequencies: dict[str, int] = about("Word of the question, and how many memories of the namespace hold it", {"치과": 1})
    held_back_by: list[str] = about("Filters that it does not pass", ["tags=('work',)"])
    later: list[str] = about("Later memories that may have taken its place, and are ranked before it", [])
    memory: MemoryOut = about("The memory, whole", MEMORY)


class EventOut(BaseModel):
    "Something that was done to a memory."

    at: str = about("When", WHEN)
    kind: str = about("What: write, update, delete, erase, link, use …", "update")
    detail: dict[str, Any] = about("Ids, numbers and reasons, never a text", {"version": 2, "changed": ["text"]})


class HistoryOut(BaseModel):
    "Every version of a memory that is kept, and what happened to it."

    versions: list[MemoryOut] = about("Versions, oldest first", [MEMORY])
    events: list[EventOut] = about("Events, oldest first", [{"at": WHEN, "kind": "write", "detail": {}}])


class EdgeOut(BaseModel):
    "A link from one memory to another."

    src: str = about("The id of the memory it starts from", "street")
    dst: str = about("The id of the memory it leads to", "dentist")
    relation: str = about("Its type", "supports")
    weight: float = about("Its weight, in [0, 1]", 0.8)
    origin: str = about("What made it: user, sim, time, tag, write", "user")


class EdgesOut(BaseModel):
    "The links of a memory."

    items: list[EdgeOut] = about("Links from and to it, strongest first",
                                 [{"src": "street", "dst": "dentist", "relation": "supports", "weight": 0.8, "origin": "user"}])


class UnlinkedOut(BaseModel):
    "How many links were removed."

    removed: int = about("Links that were there, and are no more", 1)


class UseOut(BaseModel):
    "The counters of a memory."

    id: str = about("The memory", "dentist")
    success: int = about("How often it helped", 1)
    failure: int = about("How often it misled", 0)
    access_count: int = about("How often it was used", 1)


ANCHOR_FIELDS = ("slot", "summary", "pinned", "hop_budget", "uses", "failures", "in_use")  # named alike in the state of an anchor
ANCHOR = {"slot": "A", "anchor_block_id": "street", "summary": "The dentist is on Main Street.", "pinned": True, "hop_budget": 2, "uses": 2,
          "failures": 0, "in_use": True}


class AnchorOut(BaseModel):
    "A place of attention, and where it stands."

    slot: Slot = about("Its name", "A")
    anchor_block_id: str | None = about("The memory it stands at", "street")
    summary: str = about("The beginning of that memory's text", "The dentist is on Main Street.")
    pinned: bool = about("Whether it stays there, whatever is searched", True)
    hop_budget: int = about("Links that a search walks from it", 2)
    uses: int = about("Searches and writes that went through it", 2)
    failures: int = about("Searches in a row that found nothing near it", 0)
    in_use: bool = about("Whether it was used last", True)


class AnchorsOut(BaseModel):
    "All three anchors of a namespace."

    slots: list[AnchorOut] = about("A, B and C", [ANCHOR])


class NodeOut(BaseModel):
    "A memory in a neighbourhood."

    id: str = about("The memory", "street")
    text: str = about("The beginning of its text", "The dentist is on Main Street.")
    kind: Kind = about("block, rule or strategy", "block")
    valid_from: str = about("From when it is true, or when it was said", WHEN)
    hops: int = about("Links from the centre, on the shortest way", 1)


class LinkOut(BaseModel):
    "A link between two of them."

    source: str = about("The id of one end", "street")
    target: str = about("The id of the other", "dentist")
    weight: float = about("Its weight, in [0, 1]", 0.8)
    origin: str = about("What made it: sim, time, tag, write, user", "user")


class NeighboursOut(BaseModel):
    "What is around a memory."

    center: str = about("Its id", "dentist")
    nodes: list[NodeOut] = about("Memories, nearest first, the centre itself among them",
                                 [{"id": "dentist", "text": MEMORY["text"], "kind": "block", "valid_from": WHEN, "hops": 0}])
    links: list[LinkOut] = about("Links, strongest first", [{"source": "street", "target": "dentist", "weight": 0.8, "origin": "user"}])
    cut: bool = about("Whether there is more than is shown", False)


class TimelineItem(BaseModel):
    "A memory on the time line."

    id: str = about("The memory", "dentist")
    at: str = about("From when it is true, or when it was said", WHEN)
    text: str = about("The beginning of its text", "다음 주 화요일에 치과 예약이 있어")
    kind: Kind = about("block, rule or strategy", "block")
    tags: list[str] = about("Tags, sorted", ["health"])
    session: str | None = about("The conversation it belongs to", "2026-05-08", default=None)
    speaker: str | None = about("Who said it, by name or role", "Mina", default=None)


class TimelineOut(BaseModel):
    "What was remembered, latest first."

    moments: list[TimelineItem] = about("Memories, latest first",
                                        [{"id": "dentist", "at": WHEN, "text": MEMORY["text"], "kind": "block", "tags": ["health"]}])
    more: bool = about("Whether there are older ones", False)


class HealthOut(BaseModel):
    "Whether the server lives, and whether its store answers."

    live: bool = about("It answers", True)
    ready: bool = about("And so does its store", True)


class LiveOut(BaseModel):
    "Whether the server lives; its store is not asked."

    live: bool = about("It answers", True)


class ContextOut(BaseModel):
    "A block of memories for a prompt."

    context: str = about("The block: dated, attributed lines between tags that say it is data; empty: nothing is known",
                         "[2026-05-08] I am allergic to peanuts. (peanuts)")
    tokens: int = about("What it costs, by the estimate", 18)
    memories: list[str] = about("Ids of the memories in it, in order", ["peanuts"])
    resolutions: list[int] = about("How each of them stands there: 0 whole, 1 its summary, 2 its facts", [0])
    left_out: list[str] = about("Ids of memories that belong to it and had no room", [])
    rules: list[str] = about("Ids of the rules that apply and stand before the memories", [])


class ObservedOut(BaseModel):
    "What became of a prompt."

    kept: bool = about("Whether there is a memory of it", True)
    reason: str = about("Why, or why not", "a personal fact")
    duplicate: bool = about("Whether it was known already, and nothing was stored", False)
    id: str = optional("The memory", "3066901354f1")


class PassedOverOut(BaseModel):
    "Something that was said and not noted."

    words: str = about("How it begins; empty: it is not to be shown, or the reason is about the whole", "Good morning!")
    reason: str = about("Why it was not noted", "small talk")


class RememberedOut(BaseModel):
    "What was noted of a conversation, and what was not."

    proposed: list[MemoryOut] = about("Candidates, in the order in which they were said: they wait for a person. Each has `facts`, "
                                      "what it states: subject, relation, value, and `negated` where it is denied", [])
    passed_over: list[PassedOverOut] = about("The rest, with the reason", [{"words": "Good morning!", "reason": "small talk"}])
    model: str | None = about("The language model that read it; null: rules did", None)


class AppliedOut(BaseModel):
    "What rules say in a situation. With `resolve`: whether they agree, what is decided, and what is to be done."

    model_config = ConfigDict(extra="allow")
    facts: dict[str, Any] = about("The situation", {"hour": 9})
    fired: list[dict[str, Any]] = about("The rules that fire: id, version, words, what they say, effects and claims",
                                        [{"rule_id": "tea", "version": 1, "expr": "Tea in the morning.", "says": "drink = 'tea'",
                                          "effects": {"drink": "tea"}, "claims": []}])
    agreed: bool = optional("Whether there is no conflict", True)
    outcomes: dict[str, Any] = optional("What is set in the end", {"drink": "tea"})
    rulings: list[dict[str, Any]] = optional("Of each conflict: the rules, the stage that decided, winners, losers, and why", [])


class ProposalOut(BaseModel):
    "A rejection that waits for a person."

    id: str = about("Id of the memory that would be rejected", "3066901354f1")
    text: str = about("Its words", "I live in Seoul.")
    reason: str = about("Why; empty: not said", "I have never lived in Seoul.")
    at: str = about("When it was asked for", WHEN)
    actor: dict[str, Any] = about("Who asked", {"source": "rest", "caller": "guest"})


class RejectionOut(BaseModel):
    "A rejection: who, when and why. What was rejected is kept as a keyed hash alone."

    id: str = about("Its id", "a1b2c3d4e5f6")
    at: str = about("When", WHEN)
    actor: str = about("Who rejected it", "guest")
    reason: str = optional("Why, in the person's words", "I have never lived there.")
    memory: str = optional("The memory that stated it", "3066901354f1")


class SleepChangeOut(BaseModel):
    "What a night does to one memory."

    kind: str = about("merge, regenerate, compress, archive or delete", "merge")
    id: str = about("The memory", "3066901354f1")
    reason: str = about("Why", "the same words as a1b2c3d4e5f6, cosine 0.981")
    into: str = optional("The memory that stands for it from now on", "a1b2c3d4e5f6")


class SleepOut(BaseModel):
    "What a night did, or would do."

    night: str = about("Its id, to undo it by", "a1b2c3d4e5f6")
    at: str = about("When it began", WHEN)
    dry_run: bool = about("Whether nothing was changed", False)
    looked_at: int = about("Memories that were read", 120)
    counts: dict[str, int] = about("Changes by kind", {"merge": 1})
    put_off: int = about("Changes that are left to the next night", 0)
    checkpoint: bool = about("Whether what the policy has learned was saved anew", False)
    changes: list[SleepChangeOut] = about("The changes", [])


class NightOut(BaseModel):
    "A night of the past."

    night: str = about("Its id", "a1b2c3d4e5f6")
    began: str = about("When it began", WHEN)
    ended: str | None = about("When it ended; null: it was cut short, and the next one goes on with it", WHEN)
    counts: dict[str, int] = about("Changes by kind", {"merge": 1})


class NightsOut(BaseModel):
    "The nights of a namespace."

    nights: list[NightOut] = about("The newest first", [])


class WokenOut(BaseModel):
    "What of a night was taken back."

    night: str = about("Its id", "a1b2c3d4e5f6")
    restored: list[str] = about("Memories that are as they were", ["3066901354f1"])
    kept: dict[str, str] = about("Memories that stay as they are, and why", {})


class WaitingOut(BaseModel):
    "A memory that nobody has confirmed, or that contradicts what a person has confirmed."

    id: str = about("Its id", "3066901354f1")
    text: str = about("Its words", "I moved to Busan.")
    state: Literal["candidate", "disputed"] = about("candidate: nobody has confirmed it; disputed: it contradicts the confirmed",
                                                    "disputed")
    at: str = about("Since when", WHEN)
    source: dict[str, Any] = about("Where it came from", {"source": "mcp", "actor": "model"})
    against: list[dict[str, str]] = about("Id and words of what it contradicts", [{"id": "seoul", "text": "I live in Seoul."}])


class ReviewOut(BaseModel):
    "What waits for a person, and what was rejected."

    proposals: list[ProposalOut] = about("What waits, oldest first", [])
    waiting: list[WaitingOut] = about("Memories that wait to be accepted or rejected, oldest first, at most 100", [])
    rejections: list[RejectionOut] = about("What was rejected, oldest first", [])


class NamespacesOut(BaseModel):
    "The namespaces that the token of the caller opens."

    namespaces: list[str] = about("Namespaces, the usual one first", ["default"])


class StatsOut(BaseModel):
    "How much a namespace holds."

    model_config = ConfigDict(extra="allow")
    namespace: str = about("The partition", "default")
    memories: int = about("Memories in it, archived ones too", 3)
    by_kind: dict[str, int] = about("How many of each kind", {"block": 3})
    by_status: dict[str, int] = about("How many of each status", {"hot": 3})
    by_category: dict[str, int] = about("How many of each category", {"fact": 1})
    versions: int = about("Superseded and deleted versions that are kept", 1)
    events: int = about("Lines of the diary", 5)
    edges: int = about("Links between its memories", 0)
    first: str = optional("When the oldest was recorded", WHEN)
    last: str = optional("When the latest was changed", WHEN)


RULE = {"rule_id": "tea", "expr": "아침에는 차를 마신다", "formal": "when hour < 11 then drink = 'tea'", "tags": ["drink"], "version": 1,
        "status": "hot", "success": 0, "fail": 0, "last_used": None, "created_at": WHEN, "confidence": 0.5}


class RuleOut(BaseModel):
    "A rule, and how it did."

    rule_id: str = about("Its id", "tea")
    expr: str = about("The rule in words", "아침에는 차를 마신다")
    formal: str | None = about("Condition and outcome; null: words alone, which is not applied", "when hour < 11 then drink = 'tea'")
    tags: list[str] = about("Tags, sorted", ["drink"])
    version: int = about("1, 2, 3 …", 1)
    status: Status = about("hot: new; ltm: promoted; held: not applied until a person decides; archived: kept, and not applied", "hot")
    success: int = about("How often it helped", 0)
    fail: int = about("How often it misled", 0)
    last_used: str | None = about("The last use that was reported", WHEN)
    created_at: str = about("When it was added", WHEN)
    confidence: float = about("(helped + 1) / (uses + 2)", 0.5)


class RulesOut(BaseModel):
    "Rules of a namespace, with how they did."

    rules: list[RuleOut] = about("The highest confidence first", [RULE])


class RuleHistoryOut(BaseModel):
    "What happened to a rule."

    rule_id: str = about("Its id", "tea")
    expr: str = about("Its words in the last version", "아침에는 차를 마신다")
    events: list[dict[str, Any]] = about("Oldest first: when, what, the status and the counts after it, and who caused it", [])


class ConflictOut(BaseModel):
    "A recorded conflict, with what came of it."

    id: str = about("Its id", "c1")
    at: str = about("When it was decided", WHEN)
    rules: list[str] = about("All rules in dispute", ["cola", "tea"])
    stage: str = about("What decided", "vote")
    winners: list[str] = about("Rules that were followed", ["tea"])
    losers: list[str] = about("Rules that were not", ["cola"])
    disproved: list[str] = about("Losers that were ruled out", [])
    verdict: str = about("right, wrong or unknown", "right")
    judge: str = about("Who judged it", "person")


class RuleAuditOut(BaseModel):
    "Defects of rules: pairs that can contradict each other, rules that never fire, say nothing or are superfluous."

    rules: int = about("Rules that were checked", 2)
    without_formal: int = about("Rules without a formal side, which were not", 0)
    pairs: int = about("Pairs whose conditions may hold together", 1)
    asked: int = about("Questions to the solver", 0)
    left_open: int = about("Pairs that were not decided", 0)
    counts: dict[str, int] = about("Kind of finding → how many", {})
    groups: list[dict[str, Any]] = about("Pairs about one variable that are not all listed", [])
    findings: list[dict[str, Any]] = about("Kind, rules, what it is, and a situation that shows it", [])


class RuleTableOut(BaseModel):
    "What an import of a decision table did."

    added: int = about("Rules that are new", 2)
    unchanged: int = about("Rules that were there already", 0)
    refused: dict[str, str] = about("Id of a rule → why it stays as it is", {})


class ConflictsOut(BaseModel):
    "Recorded conflicts, and the rules that are in them again and again."

    conflicts: list[dict[str, Any]] = about("The newest first: id, when, the rules, the stage that decided, winners, losers, those "
                                            "that were disproved, the verdict and who judged", [])
    offenders: list[dict[str, Any]] = about("Rules that were disproved, or followed and judged wrong, at least twice; the worst first", [])
