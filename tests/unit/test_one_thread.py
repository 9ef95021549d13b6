"""A search computes in the thread that asks: what takes a fraction of a millisecond is not shared out to threads of BLAS, which wait for a
processor that others use."""
import os
import subprocess
import sys
from pathlib import Path

import pytest

_SEARCHES = """
import sys
import threading
from contextlib import suppress
from pathlib import Path

import numpy as np

from rlm import Memory
from rlm.bench.workload import DIM, LookupEmbedder


def ticks():
    "Ticks of the clock that threads which are not Python's have computed for."
    known, found = {t.native_id for t in threading.enumerate()}, 0
    for task in Path("/proc/self/task").iterdir():
        with suppress(FileNotFoundError):  # a thread that has ended meanwhile
            found += int(task.name) not in known and sum(map(int, (task / "stat").read_text().rpartition(")")[2].split()[11:13]))
    return found


texts = [f"note {n}" for n in range(1500)]
vectors = np.random.default_rng(0).standard_normal((len(texts), DIM)).astype(np.float32)
with Memory(sys.argv[1], embedder=LookupEmbedder(texts, vectors), supersede="off") as memory:
    memory.write_many(texts)
    memory.search(texts[0])
    index = memory.searcher.index.semantic
    assert index.is_exact
    measured = index.measure(vectors[0])
    before = ticks()
    for _ in range(2000):
        index.score_all(measured)
    print(ticks() - before)
"""


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="needs /proc, which tells what each thread computes")
def test_exact_cosines_are_computed_by_the_thread_that_asks(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", _SEARCHES, str(tmp_path / "memory.db")], capture_output=True, text=True, timeout=120,
                          env=os.environ | {"OPENBLAS_NUM_THREADS": "4"}, cwd=Path(__file__).parents[2])
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) <= 20, "threads of BLAS have computed"
