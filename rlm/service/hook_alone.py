"""A hook's memory where no server runs: read by words in this process, written in another one, which is not waited for."""

import argparse
import json
import os
import subprocess
import sys
from typing import Any

POOL = 8  # hits that compete for room in a block: by words alone, the later ones share little with the question
FEW = 3  # memories that are looked up by a fact that the question names, at most


def word_context(given: argparse.Namespace,  # options of the hook
                 question: str,              # subject of the context
                 apart_from: str | None,     # session whose turns are left out
                 ) -> tuple[str, dict[str, Any]]:
    """Return a block of what is pinned, what states a fact that a question asks for, and what holds its words; and its figures for the log.
    What is no longer true of a memory is said. Raises `StoreError`."""
    from rlm.core.files import server_url
    from rlm.core.settings import load_settings
    settings = load_settings(given.config, db_path=given.db, namespace=given.namespace)
    path, namespace = os.path.expanduser(settings.db_path), settings.namespace
    if server_url(path) is None and not os.path.exists(path):
        return "", {"memories": 0, "tokens": 0}
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # its threads are not needed, and take time to start
    from rlm.companion.composer import compose, ended_statements
    from rlm.companion.statement import normal_value
    from rlm.companion.fact_extraction import asked_relations
    from rlm.core.clock import SystemClock, zone
    from rlm.core.text import tokens
    from rlm.store.filters import Filters
    from rlm.store.protocols import Weights
    from rlm.store.events import EventLog
    from rlm.store.facts import FactTable, RejectionTable
    from rlm.store.fulltext import FullTextIndex
    from rlm.store.memories import MemoryTable
    from rlm.store.storage import open_database
    now, db = SystemClock().now(), open_database(path, True, "normal", 30.0, namespace).for_namespace(namespace)
    try:
        memories, facts, rejections = MemoryTable(db), FactTable(db), RejectionTable(db)
        pinned = [r for r in memories.pinned(namespace, now) if r.provenance.get("trust") != "low"]
        asked = [f for name in asked_relations(question) for f in facts.about(namespace, "user", normal_value(name))]
        seqs = list(dict.fromkeys(f.seq for f in reversed(asked) if not (f.negated or f.ended)))[:FEW]
        known = memories.records(seqs) if seqs else {}
        stated = [r for r in known.values() if r.is_current(now) and r.valid_from <= now]
        terms = tuple(dict.fromkeys(tokens(question)))
        matches = FullTextIndex(db).match(terms, namespace, Filters.read(now, kind="block"), POOL, Weights()) if terms else []
        best = max((m.score for m in matches), default=0.0)
        found = {r.id: (r, 1.0) for r in sorted(stated, key=lambda r: -r.seq)}
        found |= {m.record.id: (m.record, m.score / best) for m in matches if m.score > 0 and m.record.id not in found}
        wrong = set[str]()
        served = [*pinned, *(r for r, _ in found.values())]
        if rejections.salts(namespace):
            from rlm.companion.rejection import refused_values  # reads facts, which takes time to import
            wrong = {served[n].id for n in rejections.find_each(namespace, map(refused_values, served))}
        waiting = EventLog(db).proposed(namespace, [r.id for r in served])  # of a person who has not decided yet
        doubted = {r.id: r.changed(provenance={**r.provenance, "trust": "disputed"}) for r in served if r.id in waiting}
        profile = [doubted.get(r.id, r) for r in pinned if r.id not in wrong]
        answers = [(doubted.get(r.id, r), w) for r, w in found.values()
                   if r.id not in wrong and (apart_from is None or r.session != apart_from)]
        shown = [*profile, *(r for r, _ in answers)]
        short = memories.short_ids(namespace, [r.id for r in shown])
        told = facts.of([r.seq for r in shown]) if shown else {}
        over = ended_statements(shown, told, facts.about)
    finally:
        db.close()
    block = compose(profile, answers, question, given.tokens, past=over, short=short, where=zone(settings.time_zone),
                    stated=lambda: told)
    return block.text, {"memories": len(block), "tokens": block.tokens}


def write_later(given: argparse.Namespace,  # options of the hook
                session: str,               # conversation that the turn belongs to
                turn: dict[str, Any],       # text and role
                ) -> None:
    "Have another process store a turn; what it fails at, it notes in the log of the hook."
    words = ["--log", given.log]
    for name in ("db", "namespace", "config"):
        words += [f"--{name}", getattr(given, name)] if getattr(given, name) else []
    child = subprocess.Popen([sys.executable, "-P", "-m", "rlm.service.hook_alone", *words], stdin=subprocess.PIPE,
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    assert child.stdin is not None
    child.stdin.write(json.dumps({"session": session, "turn": turn}).encode())
    child.stdin.close()
    child.returncode = 0  # it outlives this process, which does not wait for it


def _write_turn() -> int:
    "Store the turn that standard input tells; returns 0, whatever happens."
    from rlm.service.hook import note, read_options, reason_of
    if hasattr(os, "nice"):
        os.nice(10)  # the person's next prompt comes first
    given = read_options(None)
    try:
        told, kept = json.loads(sys.stdin.buffer.read()), True
        from rlm.service.memory import Memory
        with Memory(given.db, namespace=given.namespace, config=given.config) as memory:
            if told["turn"]["role"] == "user":
                from rlm.service.capture import capture_prompt
                kept = capture_prompt(memory, told["turn"]["text"], {"source": "hook"}, told["session"]).kept
            else:
                kept = bool(memory.add_conversation([told["turn"] | {"provenance": {"source": "hook"}}], session=told["session"]))
        if kept:
            note(given.log, {"event": "write", "by": "words", "stored": 1})
    except Exception as error:  # nobody waits for it: the log is where it is told
        note(given.log, {"event": "write", "failed": reason_of(error)})
    return 0


if __name__ == "__main__":
    sys.exit(_write_turn())
