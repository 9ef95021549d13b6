"A search sends few statements to SQLite: each is counted by SQLite itself."

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from rlm import Memory
from rlm.core.clock import ManualClock
from rlm.store.embedding_model import Calibration, unit

QUIET, AFTER_A_WRITE = 6, 10


class Letters:
    "A toy model: a text's letters, counted."

    name, dim = "letters", 26
    calibration = Calibration(np.zeros(26, np.float32), np.eye(26, dtype=np.float32)[25], 0.38, 0.56)

    def embed(self, texts: list[str], kind: str) -> np.ndarray:
        return unit([[t.lower().count(chr(97 + i)) for i in range(26)] for t in texts])


@pytest.fixture(params=["words", "vectors"])
def memory(request: pytest.FixtureRequest, tmp_path: Path, clock: ManualClock) -> Iterator[Memory]:
    with Memory(tmp_path / "store.db", clock=clock, embedder="none" if request.param == "words" else Letters()) as memory:
        for n in range(20):
            memory.write(f"The harbour of town {n} was built in {1900 + n}.")
        assert memory.search("harbour of town 7")[0].text.startswith("The harbour of town 7")
        yield memory


def statements(memory: Memory, act: Callable[[], object]) -> list[str]:
    "The statements that are sent while something is done; those that SQLite makes of them itself begin with two dashes."
    sent: list[str] = []
    connection = memory.ctx.storage.db.current()
    connection.set_trace_callback(sent.append)
    act()
    connection.set_trace_callback(None)
    return [s for s in sent if not s.startswith("--")]


@pytest.mark.parametrize("question", ["harbour of town 7", "harbour of town 8", "nothing of the kind"])
def test_a_quiet_search_sends_six_statements_at_most(memory: Memory, question: str) -> None:
    sent = statements(memory, lambda: memory.search(question))
    assert "BEGIN" in sent and len(sent) <= QUIET, sent


@pytest.mark.parametrize("text", ["The bakery opens at seven.", "빵집은 일곱 시에 문을 연다."])
def test_the_first_search_after_a_write_sends_ten_statements_at_most(memory: Memory, text: str) -> None:
    memory.write(text)
    found: list[str] = []
    sent = statements(memory, lambda: found.append(memory.search(text)[0].text))
    assert found == [text] and len(sent) <= AFTER_A_WRITE, sent
    assert len(statements(memory, lambda: memory.search(text))) <= QUIET


def test_a_search_after_another_process_wrote_sends_ten_statements_at_most(memory: Memory, tmp_path: Path, clock: ManualClock) -> None:
    with Memory(tmp_path / "store.db", clock=clock, embedder=memory.ctx.embeddings.model() or "none") as other:
        other.write("The bakery opens at seven.")
    found: list[str] = []
    sent = statements(memory, lambda: found.append(memory.search("bakery")[0].text))
    assert found == ["The bakery opens at seven."] and len(sent) <= AFTER_A_WRITE, sent
