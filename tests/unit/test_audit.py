"What was served is in the log of recalls, by each interface; a search does not write, and an erasure reaches the log."
import json
from datetime import timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner

from rlm import Memory
from rlm.core.clock import ManualClock
from rlm.core.errors import InvalidInput, NotFound, StoreFull
from rlm.service.cli import main
from rlm.service.memory_audit import audited_moment
from rlm.store import recall_log

pytestmark = pytest.mark.usefixtures("bare")


@pytest.fixture
def memory(path: Path) -> Memory:
    with Memory(path, embedder="none", clock=ManualClock("2026-05-01T09:00:00Z")) as opened:
        opened.write("I live in Seoul.", id="seoul")
        opened.write("나는 매운 거 못 먹어", id="spicy")
        yield opened


def advance(memory: Memory, **span: float) -> None:
    assert isinstance(memory.clock, ManualClock)
    memory.clock.advance(**span)


def test_an_audit_says_what_was_believed_on_a_day_and_why_it_was_served(memory: Memory) -> None:
    memory.context("Where do I live?")
    advance(memory, days=7)
    memory.write("I moved to Busan.", id="busan")
    memory.context("Where do I live?")
    then = memory.audit("2026-05-01", query="live")
    assert [m.id for m in then.believed] == ["seoul"] and len(then.recalls) == 1
    served = then.recalls[0].served[0]
    assert (served.memory_id, served.version, then.recalls[0].door) == ("seoul", 1, "python") and served.score is not None
    now = memory.audit(id="seoul")
    assert [s.memory_id for r in now.recalls for s in r.served] == ["seoul"], "it was not served again after it had ended"
    assert now.history is not None and len(now.history.versions) == 2 and now.believed[0].valid_to is not None
    past = memory.audit("2026-05-02", id="seoul")
    assert past.history is not None and len(past.history.versions) == 1 and past.believed[0].valid_to is None
    assert {m.id for m in memory.audit("2026-05-03").believed} == {"seoul", "spicy"}
    assert "Where do I live?" in str(now) and json.loads(json.dumps(now.as_dict()))["recalls"][0]["served"]


def test_korean_questions_are_found_in_the_log(memory: Memory) -> None:
    memory.context("매운 거 먹어도 돼?")
    found = memory.audit(query="매운 거")
    assert [m.id for m in found.believed] == ["spicy"] and found.recalls[0].served[0].memory_id == "spicy"
    assert memory.audit(query="치과").recalls == ()


def test_questions_are_found_by_each_of_their_words_whatever_their_case(memory: Memory) -> None:
    for question in ("Wo ist Köln?", "저는 서울 어디에 살아요?"):
        memory.context(question)
    for words, count in (("wo ist köln?", 1), ("KÖLN wo", 1), ("köln bonn", 0), ("살아요 서울", 1)):
        assert len(memory.audit(query=words).recalls) == count, words


def test_a_day_is_a_day_of_the_zone_and_an_audit_of_nothing_else_says_what_is_held(path: Path) -> None:
    with Memory(path, embedder="none", time_zone="Asia/Seoul", clock=ManualClock("2026-05-08T20:00:00Z")) as memory:
        memory.write("나는 매운 거 못 먹어", id="spicy")  # 9 May, 05:00 in Seoul
        advance(memory, days=7)
        assert [m.id for m in memory.audit().believed] == ["spicy"] and "nothing of the kind" not in str(memory.audit())
        assert memory.audit("2026-05-08").believed == () and [m.id for m in memory.audit("2026-05-09").believed] == ["spicy"]
        assert str(memory.audit("2026-05-09")).startswith("Believed on 2026-05-09 23:59 KST:")


def test_a_search_is_not_logged_and_a_recall_does_not_move_the_events(memory: Memory) -> None:
    before = memory.backend.position()
    memory.search("Seoul")
    memory.context("Seoul")
    assert memory.ctx.recalls.flush() == 1 and memory.backend.position() == before


def test_an_erasure_reaches_the_log_and_a_recall_that_comes_late_is_dropped(memory: Memory, path: Path) -> None:
    memory.context("Do I live in Seoul, near the Gwanghwamun gate?")
    memory.context("매운 거 먹어도 돼?")
    assert memory.ctx.recalls.flush() == 2 and b"Gwanghwamun" in path.read_bytes() + Path(f"{path}-wal").read_bytes()
    memory.context("Gwanghwamun, Seoul again")  # waits while the memory is erased
    memory.delete("seoul", erase=True)
    assert memory.ctx.recalls.flush() == 0
    assert [r.query for r in memory.audit().recalls] == ["매운 거 먹어도 돼?"]
    memory.close()
    assert not any(b"Gwanghwamun" in p.read_bytes() for p in path.parent.rglob("*") if p.is_file())


def test_an_erasure_leaves_the_record_of_what_else_was_served_and_no_word_of_the_question(memory: Memory, path: Path) -> None:
    memory.write("I work in Seoul near Gwanghwamun.", id="work")
    for gone in ("seoul", "work"):
        memory.context("Gwanghwamun, Seoul: where do I live and work?")
        assert memory.ctx.recalls.flush() == 1 and len(memory.audit(id="work").recalls[0].served) == (2 if gone == "seoul" else 1)
        if gone == "work":
            memory.delete("work")  # purged below
            advance(memory, days=2)
            memory.backend.purge("default", memory.clock.now(), memory.clock.now())
            assert memory.audit().recalls == (), "nothing else was served"
        else:
            memory.delete("seoul", erase=True)
            kept = memory.audit(id="work").recalls
            assert [(r.query, [s.memory_id for s in r.served]) for r in kept] == [("(erased)", ["work"])]
    memory.close()
    assert not any(b"Gwanghwamun" in p.read_bytes() for p in path.parent.rglob("*") if p.is_file())


def test_what_cannot_be_stored_at_the_end_is_said_once(memory: Memory, monkeypatch: pytest.MonkeyPatch,
                                                       caplog: pytest.LogCaptureFixture) -> None:
    def full(patience: float | None = None) -> int:
        raise StoreFull("There is no room left.")
    monkeypatch.setattr(memory.ctx.recalls, "flush", full)
    memory.ctx.recalls.close()
    memory.ctx.recalls.close()
    assert caplog.text.count("could not be stored") == 1


def test_an_erased_namespace_leaves_no_recall(memory: Memory) -> None:
    other = memory.namespace("joon")
    other.write("The boat is in the harbour.", id="boat")
    other.context("Where is the boat?")
    memory.context("Where do I live?")
    assert memory.ctx.recalls.flush() == 2 and len(other.audit().recalls) == 1
    memory.backend.erase_namespace("joon", memory.clock.now())
    assert other.audit().recalls == () and len(memory.audit().recalls) == 1, "that of the neighbour stays"


def test_a_question_to_an_erased_namespace_is_not_kept_and_what_is_left_of_one_is_seen_and_erased(memory: Memory, path: Path) -> None:
    bada = memory.namespace("bada")
    bada.write("The boat is in the harbour.")
    memory.admin.erase_namespace("bada")
    bada.context("Is the zwiebelkuchen in the harbour?")
    assert memory.ctx.recalls.flush() == 0 and "bada" not in [n.name for n in memory.backend.namespaces()]
    assert b"zwiebelkuchen" not in path.read_bytes() + Path(f"{path}-wal").read_bytes()
    with memory.backend.transaction():  # as earlier versions left it
        memory.backend.db.query("INSERT INTO recalls (at, namespace, query, door, actor, event) "
                                "VALUES ('2026-01-01', 'bada', 'zwiebelkuchen?', 'rest', '', 1)")
    assert [(n.name, n.memories) for n in memory.backend.namespaces()] == [("bada", 0), ("default", 2)]
    assert memory.admin.purge_namespace("bada", timedelta(0)).erased == 0 == memory.admin.erase_namespace("bada").erased
    assert bada.audit().recalls == () and [n.name for n in memory.backend.namespaces()] == ["default"]
    with pytest.raises(NotFound, match="nothing in namespace 'bada'"):
        memory.admin.erase_namespace("bada")


def test_the_log_is_bounded_and_can_be_switched_off(path: Path) -> None:
    with Memory(path, embedder="none", recall_log=3) as few:
        few.write("Something is held.")
        for n in range(5):
            few.context(f"question {n}")
        assert [r.query for r in few.audit().recalls] == ["question 4", "question 3", "question 2"]
    with Memory(path, embedder="none", recall_log=0) as off:
        off.context("not recorded")
        assert off.ctx.recalls.flush() == 0 and len(off.audit().recalls) == 3
    with Memory(path, embedder="none", read_only=True) as reader:
        reader.context("not recorded either")
        assert len(reader.audit().recalls) == 3


def test_what_waits_is_stored_when_the_store_is_closed(path: Path) -> None:
    with Memory(path, embedder="none") as first:
        first.write("The key is under the mat.", id="key")
        first.context("Where is the key?")
    with Memory(path, embedder="none") as second:
        assert [r.query for r in second.audit(id="key").recalls] == ["Where is the key?"]


def test_credentials_in_a_question_are_taken_out(memory: Memory) -> None:
    memory.context("my key is sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCD, where is Seoul?")
    assert "abcdefghijkl" not in memory.audit().recalls[0].query and "Seoul" in memory.audit().recalls[0].query


def test_bad_arguments_are_refused(memory: Memory) -> None:
    with pytest.raises(NotFound):
        memory.audit(id="nothing")
    for bad in ({"when": "yesterday-ish"}, {"query": 7}, {"k": 0}):
        with pytest.raises(InvalidInput):
            memory.audit(**bad)
    assert audited_moment("2030-01-01", memory.clock.now()) == memory.clock.now(), "what is to come is not known yet"


def test_the_command_line_logs_what_it_prints_and_shows_the_audit(path: Path) -> None:
    run = CliRunner()
    for line in (["memory", "write", "The key is under the mat.", "--id", "key"], ["memory", "search", "key"],
                 ["context", "where is the key?"]):
        assert run.invoke(main, [*line, "--db", str(path)]).exit_code == 0
    found = run.invoke(main, ["audit", "--id", "key", "--json", "--db", str(path)])
    assert [(r["door"], r["query"]) for r in json.loads(found.output)["recalls"]] == [("cli", "where is the key?"), ("cli", "key")]
    assert "key v1" in run.invoke(main, ["audit", "key", "--db", str(path)]).output


def test_an_audit_of_a_word_leaves_out_what_has_nothing_to_do_with_it() -> None:
    pytest.importorskip("onnxruntime", reason="needs e5: pip install 'rlm[e5]'")
    with Memory(":memory:", embedder="e5") as memory:
        memory.write_many(["Amara works as a paediatric nurse.", "My dentist is Dr Sutherland.", "I hate figs.", "I drive a blue Skoda.",
                           "The band rehearses on Thursdays.", "Our cat is named Biscuit.", "My mum lives in Birmingham."])
        assert [m.text for m in memory.audit(query="nurse").believed] == ["Amara works as a paediatric nurse."]
        assert memory.audit(query="where does my mother live?").believed[0].text == "My mum lives in Birmingham."


def test_a_store_in_memory_keeps_more_recalls_than_wait_and_raises_no_alarm(caplog: pytest.LogCaptureFixture,
                                                                            monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recall_log, "WAITING", 5)
    with Memory(":memory:", embedder="none") as memory:
        memory.write("나는 서울에 살아.", id="seoul")
        for n in range(17):
            memory.context(f"어디에 살아? {n}")
        assert len(memory.audit(id="seoul", k=100).recalls) == 17
    assert not caplog.records
