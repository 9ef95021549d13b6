"Whatever is written, an open store answers as one that is opened afterwards: what it keeps in memory is never older than the file."
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest
from toy import Toy

from rlm import Memory
from rlm.core.clock import ManualClock
from rlm.core.errors import RlmError

pytestmark = pytest.mark.usefixtures("bare")
PEOPLE = ("I", "My sister", "Mina", "Tom", "민아는", "나는")
QUESTIONS = ("Where do I live?", "Where does Mina live?", "민아는 어디 살아?", "What do I like?", "boat", "고양이",
             "When does the train leave?", "나 어디서 일해?", "What did I sell?", "Where is order 4472?")


def sentence(draw: Random) -> str:
    "Something that a person may tell."
    who = draw.choice(PEOPLE)
    if not who.isascii():
        return draw.choice([f"{who} {draw.choice(('서울', '부산'))}에 살아.", f"{who} {draw.choice(('배를', '고양이를'))} 좋아해.",
                            f"{who} {draw.choice(('삼성', '카카오'))}에서 일해.", f"{who} 이제 {draw.choice(('커피', '녹차'))} 안 마셔."])
    s = "" if who == "I" else "s"
    return draw.choice([f"{who} live{s} in {draw.choice(('Oslo', 'Rome'))}.", f"{who} like{s} the {draw.choice(('boat', 'cat', 'piano'))}.",
                        f"{who} moved to {draw.choice(('Oslo', 'Busan'))}.", f"{who} no longer like{s} the {draw.choice(('boat', 'cat'))}.",
                        f"The train leaves at {draw.randint(1, 12)}.", f"No, it leaves at {draw.randint(1, 12)}.",
                        f"Order {draw.choice((4472, 4473))} is at the bakery.", f"{who} sold the {draw.choice(('boat', 'piano'))} in May."])


def changes(memory: Memory, other: Memory, draw: Random, clock: ManualClock) -> list[Callable[[str], Any]]:
    "What may be done to a store, each with a memory; writing more often than the rest."
    def chat(_: str) -> Any:
        turns = [{"text": sentence(draw), "role": draw.choice(("user", "assistant"))} for _ in range(3)]
        return memory.add_conversation(turns, session=draw.choice(("s1", "s2")))

    def link(id: str) -> Any:
        return memory.link(id, draw.choice(memory.list(k=500)).id, draw.choice(("related", "maybe superseded by")))

    return [*[lambda id: memory.write(sentence(draw))] * 6, lambda id: memory.write_many([sentence(draw) for _ in range(3)]), chat, link,
            lambda id: memory.update(id, text=sentence(draw)), lambda id: memory.update(id, valid_to=clock.now()),
            lambda id: memory.update(id, status=draw.choice(("archived", "ltm"))), lambda id: memory.update(id, pinned=draw.random() < 0.5),
            memory.delete, lambda id: memory.delete(id, erase=True), lambda id: memory.feedback(id, helped=1),
            lambda id: memory.companion.sleep(), lambda id: other.write(sentence(draw)), lambda id: memory.write_near(sentence(draw))]


def answers(memory: Memory) -> dict[str, Any]:
    "What a person sees of a store."
    shown: dict[str, Any] = {"list": [(r.id, r.text, r.version, r.status, r.valid_to) for r in memory.list(k=500)]}
    for question in QUESTIONS:
        hits = memory.search(question, 6)
        shown[question] = [(h.id, h.past, h.duplicates, pytest.approx(h.score, abs=2e-3)) for h in hits]
        shown[f"block: {question}"] = memory.context(question, 120).text
    return shown


@pytest.mark.parametrize("seed", [0, 153, *(pytest.param(n, marks=pytest.mark.nightly) for n in range(20, 28))])
@pytest.mark.parametrize("vectors", [True, False])
def test_an_open_store_answers_as_one_that_is_opened_now(path: Path, clock: ManualClock, seed: int, vectors: bool) -> None:
    draw, model = Random(seed), (Toy if vectors else lambda: "none")
    with (Memory(path, embedder=model(), clock=clock) as one, Memory(path, embedder=model(), clock=clock) as two,
          Memory(path, namespace="other", embedder=model(), clock=clock) as other):
        for step in range(30):
            memory = draw.choice((one, two))
            known = memory.list(k=500)
            possible = changes(memory, other, draw, clock)
            change = draw.choice(possible) if known else possible[0]
            try:
                change(draw.choice(known).id if known else "")
            except RlmError:
                continue  # a link to itself, a text that was deleted
            clock.advance(seconds=draw.choice((1, 60, 86_400)))
            for store in (one, two):
                store.embeddings.worker.wait()
            if step % 3 == 0:
                with Memory(path, embedder=model(), clock=clock) as opened:
                    expected = answers(opened)
                assert answers(one) == expected and answers(two) == expected
                assert one.check() == []
