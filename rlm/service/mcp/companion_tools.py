"""The tools that decide and correct: what belongs into a conversation, what is worth saving, and what a person has rejected.

A model cannot reject a memory by itself. The client asks the person, where it can; otherwise the rejection is a proposal that waits for
`rlm review`.
"""

from collections.abc import Awaitable, Callable
from typing import Annotated, Any

from anyio import to_thread
from mcp.server.elicitation import AcceptedElicitation, DeclinedElicitation, ElicitationResult
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.resolve import Elicit, Resolve
from pydantic import BaseModel, Field

from rlm.core.text import clip

from ..capture import teach_policy
from ..proposals import MAX_REASON, open_proposals, propose_rejection
from .schemas import MAX_RESULTS, DryRun, MemoryId, Messages, Reason, RightDecision, Turn, TurnTokens, WrongPart, tool_memory
from .sources import MemorySource

PROPOSED = ("You cannot reject a memory by yourself. It waits for a person: `rlm review reject ID`. Until then it is served as disputed: "
            "do not rely on it.")
MOST_WAITING = 20  # memories that one answer lists: a model reads them all
DECIDE = ("A person decides: rlm review reject ID (of the action delete: rlm memory delete ID), dismiss ID or, of the unconfirmed, "
          "accept ID. Until then a memory stands.")
REJECTED = ("The person confirmed: it is gone. These words, and what is read as the same fact in other words, are refused from now on; "
            "an unusual wording may not be, so do not save it again.")
PLANNED = "Nothing was changed. Show the person what would be, and call again with dry_run false if they agree."
SLEPT = "Nothing was deleted. The person can take it back: rlm sleep --undo {}."
ACCEPTED = "The person confirmed it: it is trusted, and ends what it contradicts."
WAITS = "You cannot confirm a memory by yourself. It waits for a person: `rlm review accept ID`."
NOTED = "Each waits for the person: `rlm review accept ID` or `reject ID`. Until then it is served as not confirmed."
NOTHING_NOTED = "Nothing was noted; `passed_over` says why."
ERASED = "It is gone for good. A write makes the namespace anew while a token opens it: rlm tokens revoke."
ANOTHER_NAME = "The person typed another name: nothing was erased."
NOT_ERASED = "You cannot erase by yourself, and no person confirmed it: nothing was erased. A person can: rlm namespaces erase NAME."
STANDS = "The person declined: the memory stands as it is."


class CompanionTools:
    "The tools over the caller's companion. Each method is one tool; threads may call them at once."

    def __init__(self,
                 source: MemorySource,  # gives the caller's memory
                 ) -> None:
        self.source = source

    def auto_search(self, turn: Turn, tokens: TurnTokens = 1024) -> dict[str, Any]:
        """Return what is remembered that belongs to the person's message: a block of dated lines within a budget of tokens.

        Use it at the beginning of each turn, with the person's message as it is, before you answer. Rules that apply come first, then
        pinned memories, then what answers the message, as whole as there is room.
        Do not use it to look for one particular thing: memory_search returns ids and scores. An empty block means that nothing is known.
        Example: {"turn": "What should I cook for Mina tonight?"}"""
        with self.source.use("read") as memory:
            block = memory.companion.context(turn, tokens, door="mcp", actor=str(self.source.actor().get("caller", "")))
        return {"context": block.text, "tokens": block.tokens, "memories": [id for id, _ in block.used], "left_out": list(block.left_out),
                "rules": list(block.rules)}

    def memory_remember(self, messages: Messages) -> dict[str, Any]:
        """Read a stretch of conversation and note what the person said that is worth keeping: one candidate for each sentence.

        Use it at the end of a conversation, or when the person asks you to remember what was said. Give the messages as they were
        written, yours too, with role "assistant". What is noted waits for the person; for everything else the answer says why not. Tell
        the person what it has ended (`superseded`).
        Do not use it for one thing that you want to save in your own words: that is memory_save.
        Example: {"messages": [{"role": "user", "text": "My sister Mina lives in Jeju. How is the weather?"}]}"""
        given = [{name: value for name, value in message.items() if value is not None} for message in messages]
        with self.source.use("write") as memory:
            found = memory.remember(given)
        over: Any = [{"words": words, "reason": why} for words, why in found.passed_over[:MAX_RESULTS]]
        ended: Any = found.as_dict()["superseded"][:MAX_RESULTS]
        return {"noted": [tool_memory(r) for r in found.proposed[:MAX_RESULTS]], "superseded": ended, "passed_over": over,
                "note": NOTED if found.proposed else NOTHING_NOTED}

    def policy_decide(self, turn: Turn) -> dict[str, Any]:
        """Say whether a sentence is worth saving (저장할 가치가 있는지), whether to look up memories for it, and why. Nothing changes.

        Use it when the person asks whether something is worth remembering, or why you did or did not remember it, or when you are unsure.
        Do not use it before every save: when they ask you to remember something, or state a fact about themselves, just save it.
        Example: {"turn": "I moved to Busan last week."}"""
        with self.source.use("read") as memory:
            return memory.companion.decide(turn).as_dict()

    def policy_feedback(self, turn: Turn, right: RightDecision) -> dict[str, Any]:
        """Teach the policy what is right for a message: that it is worth saving, or not (이런 건 기억해 / 기억하지 마).

        Use it when the person says that messages like this one should or should not be remembered. It changes later decisions about what
        is neither plainly worth saving nor plainly not; it stores and deletes no memory.
        Do not use it to save something (memory_save), to delete it (memory_delete), or because you think so yourself.
        Example: {"turn": "The train was late again.", "right": "skip"}"""
        with self.source.use("write") as memory:
            return teach_policy(memory, turn, right).as_dict()

    def policy_status(self) -> dict[str, Any]:
        """Show the state of the policy that decides what is worth saving: what it has learned from feedback, and its thresholds.

        Use it when the person asks how you decide what to remember.
        Do not use it to decide about one message: that is policy_decide.
        Example: {}"""
        with self.source.use("read") as memory:
            policy = memory.companion.policy()
            return {"updates": policy.bandit.updates, "learned": policy.bandit.updates > 0, "epsilon": policy.epsilon,
                    "save_from": policy.rules.save_from, "skip_up_to": policy.rules.skip_up_to,
                    "rejections": len(memory.companion.rejections())}

    def sleep_cycle_run(self, dry_run: DryRun = True) -> dict[str, Any]:
        """Tidy up all memories (정리): merge duplicates that say the same, archive what has not been used for long, save what was learned.

        Use it when the person asks to tidy up, or says that there are duplicates. First with dry_run true: it tells what would be done.
        Do not use it to forget one particular thing: that is memory_delete. Pinned memories are never touched.
        Example: {"dry_run": true}"""
        with self.source.use("write") as memory:
            report = memory.companion.sleep(dry_run, delete=False).as_dict()
        shown: Any = {n: report[n] for n in ("night", "dry_run", "looked_at", "counts", "put_off")}
        shown |= {"changes": report["changes"][:MAX_RESULTS], "note": PLANNED if dry_run else SLEPT.format(report["night"])}
        return shown  # type: ignore[no-any-return]

    def memory_review(self) -> dict[str, Any]:
        """List the memories that wait for the person's decision (결정을 기다리는 기억): proposed to be rejected, not confirmed, or
        contradicting a confirmed one.

        Use it when the person asks what they have to decide, or whether something wrong was noted. Show them the command that
        decides; you cannot decide for them.
        Example: {}"""
        with self.source.use("read") as memory:
            waiting: Any = [{"memory": tool_memory(p.memory), **{n: p.as_dict()[n] for n in ("action", "reason", "at")}}
                            for p in open_proposals(memory.reader)]
            proposed = {p["memory"]["id"] for p in waiting}
            unconfirmed: Any = [{"memory": tool_memory(w.memory), "against": [tool_memory(r) for r in w.against]}
                                for w in memory.companion.waiting(MOST_WAITING) if w.memory.id not in proposed]
            rejected = len(memory.companion.rejections())
        return {"waiting": waiting, "unconfirmed": unconfirmed, "rejected": rejected, "note": DECIDE}


class Acceptance(BaseModel):
    "What a person is asked before a memory is confirmed."

    accept: bool = Field(title="It is right", description="Yes: it is trusted from now on. No: it stays as it is.")


class Confirmation(BaseModel):
    "What a person is asked before a memory is rejected."

    reject: bool = Field(title="Reject it", description="Yes: delete it, and refuse it when it comes again. No: it stands.")


class ErasureConfirmation(BaseModel):
    "What a person is asked before a namespace is erased."

    name: str = Field(title="Its name", description="Type the name of the namespace to erase it for good. Anything else erases nothing.")


def _can_ask(ctx: "Context[Any, Any]") -> bool:
    "Return whether the client can ask its person something."
    known = ctx.client_capabilities.elicitation if ctx.client_capabilities is not None else None
    return known is not None and (known.form is not None or known.url is None)


def accept_tool(source: MemorySource,  # gives the caller's memory
                ) -> Callable[..., Awaitable[dict[str, Any]]]:
    "Return the tool `memory_accept`, which asks the person before it confirms a memory."
    def ask(id: MemoryId, ctx: Context[Any, Any]) -> Elicit[Acceptance] | Acceptance | None:
        with source.use("write") as memory:
            record = memory.get(id)
        return Elicit(f"Is this right? “{clip(record.text, 200)}” ({record.id})", Acceptance) if _can_ask(ctx) else None

    def accept(id: str) -> dict[str, Any]:
        with source.use("write") as memory:
            memory.companion.accept(id)
        return {"id": id, "status": "trusted", "note": ACCEPTED}

    async def memory_accept(id: MemoryId, answer: Annotated[ElicitationResult[Acceptance], Resolve(ask)]) -> dict[str, Any]:
        """Confirm a memory that is not confirmed yet: the person says it is right ("yes, that is correct", "응, 맞아").

        Use it when the person says that something you noted is right, or settles which of two contradicting memories holds. They are asked
        once more; what they confirm is trusted, and ends what it contradicts. One memory at a time.
        Do not use it to confirm anything yourself: without the person's yes nothing changes.
        Example: {"id": "3066901354f1"}"""
        if isinstance(answer, AcceptedElicitation) and answer.data is not None and answer.data.accept:
            return await to_thread.run_sync(accept, id)
        if isinstance(answer, DeclinedElicitation) or (isinstance(answer, AcceptedElicitation) and answer.data is not None):
            return {"id": id, "status": "stands", "note": STANDS}
        return {"id": id, "status": "waits", "note": WAITS}
    return memory_accept


def erase_tool(source: MemorySource,  # gives the caller's memory
               ) -> Callable[..., Awaitable[dict[str, Any]]]:
    "Return the tool `namespace_erase`, which erases the caller's namespace when a person has typed its name."
    def ask(ctx: Context[Any, Any]) -> Elicit[ErasureConfirmation] | ErasureConfirmation | None:
        with source.use("admin") as memory:
            name = memory.ctx.namespace
        return Elicit(f"Erase everything that is remembered in {name}, for good? Nothing brings it back.",
                      ErasureConfirmation) if _can_ask(ctx) else None

    def erase(typed: str) -> dict[str, Any]:
        with source.use("admin") as memory:
            if typed.strip() != (name := memory.ctx.namespace):
                return {"status": "stands", "note": ANOTHER_NAME}
            return {"status": "erased", "receipt": memory.admin.erase_namespace(name).as_dict(source.actor()["caller"], bare=True),
                    "note": ERASED}

    async def namespace_erase(answer: Annotated[ElicitationResult[ErasureConfirmation], Resolve(ask)]) -> dict[str, Any]:
        """Erase everything that is remembered here for good: every memory, deleted ones too, with its history (전부 완전히 지워 줘).

        Use it only when the person asks that all of it be erased, for example because they leave. They are asked to
        type the name of the namespace. Give them the receipt.
        Do not use it to forget one thing (memory_delete) or to tidy up (sleep_cycle_run).
        Example: {}"""
        if isinstance(answer, AcceptedElicitation) and answer.data is not None:
            return await to_thread.run_sync(erase, answer.data.name)
        return {"status": "stands", "note": NOT_ERASED}
    return namespace_erase


def reject_tool(source: MemorySource,  # gives the caller's memory
                ) -> Callable[..., Awaitable[dict[str, Any]]]:
    "Return the tool `memory_reject`, which asks the person before it rejects a memory, or proposes it where no person can be asked."
    def ask(id: MemoryId, ctx: Context[Any, Any], part: WrongPart = "") -> Elicit[Confirmation] | Confirmation | None:
        with source.use("write") as memory:
            record = memory.get(id)
        if not _can_ask(ctx):
            return None
        done = f"“{clip(part, 200)}” be left out of" if part else "this be deleted"
        return Elicit(f"Should {done}, and refused when it comes again? “{clip(record.text, 200)}” ({record.id})", Confirmation)

    def propose(id: str, reason: str, part: str) -> dict[str, Any]:
        with source.use("write") as memory:
            said = f"“{part}” is wrong. {reason}".strip() if part else reason
            propose_rejection(memory.reader, id, said[:MAX_REASON], source.actor())
        return {"id": id, "status": "proposed", "note": PROPOSED}

    def reject(id: str, reason: str, part: str) -> dict[str, Any]:
        with source.use("write") as memory:
            made = memory.companion.reject(id, part=part or None, reason=reason or None, actor="human")
        return {"id": id, "status": "rejected", "note": f"{REJECTED} {made.note}".strip()}

    async def memory_reject(id: MemoryId, answer: Annotated[ElicitationResult[Confirmation], Resolve(ask)],
                            reason: Reason = "", part: WrongPart = "") -> dict[str, Any]:
        """Reject a memory that is false and was never true ("that is wrong, I never lived in Seoul", "사실이 아니야, 그런 적 없어").

        Use it when the person denies what you remember, after you have searched for its id. The person is asked; what they reject is
        deleted, and refused when it comes again. Give their words as the reason. Where the memory says something right as well, give
        what is wrong as `part`: only that is left out.
        Do not use it for what was true once and has changed (memory_save), for a wrong wording (memory_update), or because you doubt
        something yourself.
        Example: {"id": "3066901354f1", "reason": "I have never lived in Seoul."}"""
        if isinstance(answer, AcceptedElicitation) and answer.data is not None and answer.data.reject:
            return await to_thread.run_sync(reject, id, reason, part)
        if isinstance(answer, DeclinedElicitation) or (isinstance(answer, AcceptedElicitation) and answer.data is not None):
            return {"id": id, "status": "stands", "note": STANDS}
        return await to_thread.run_sync(propose, id, reason, part)
    return memory_reject
