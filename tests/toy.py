"""A small model for tests: it knows a few subjects in two languages, and nothing else. Registered as `subjects` and `subjects:NAME`."""
import zlib
from collections.abc import Sequence

import numpy as np

from rlm.core.text import tokens
from rlm.search.embedding.base import Kind, register_embedder
from rlm.search.lexical.lexical_index import LexicalIndex
from rlm.store.embedding_model import Calibration, Vectors, unit

SUBJECTS = (("boat", "sail", "harbour", "sea", "배를", "바다"), ("cat", "kitten", "고양이"), ("garden", "tomato", "정원"),
            ("music", "piano", "음악"), ("bread", "bakery", "빵"), ("train", "station", "기차"))
DIM = 16


class Toy:
    "A direction for each subject, and a little noise that depends on the text alone."

    def __init__(self, name: str = "toy", dim: int = DIM) -> None:
        self.name, self.dim, self.texts = name, dim, 0
        self.calibration = Calibration(np.zeros(dim, np.float32), np.eye(dim, dtype=np.float32)[dim - 1], 0.38, 0.56)

    def embed(self, texts: Sequence[str], kind: Kind) -> Vectors:
        self.texts += len(texts)
        rows = np.array([np.random.default_rng(zlib.crc32(t.encode())).normal(0, 0.1, self.dim) for t in texts]).reshape(-1, self.dim)
        for row, text in zip(rows, texts, strict=True):
            for n, words in enumerate(SUBJECTS):
                row[n] += any(w in text.lower() for w in words)
        return unit(rows)


register_embedder("subjects", lambda rest, settings: Toy(f"subjects:{rest}" if rest else "toy"))


def index_of(*texts: str) -> LexicalIndex:
    "An index of a few texts."
    index = LexicalIndex()
    for text in texts:
        index.add(tokens(text), {})
    index.flush()
    return index
