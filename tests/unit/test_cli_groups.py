"Each group of commands, as somebody uses it; the examples of all helps are run by `tests/integration/test_cli.py`."
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from rlm import Memory
from rlm.agent.models.clients import read_prices
from rlm.core.clock import ManualClock
from rlm.core.settings import cosines
from rlm.recall.anchoring import read_policy
from rlm.service.cli import main
from rlm.service.cli.rules import read_fact
from rlm.service.http.tokens import Token

pytestmark = pytest.mark.usefixtures("bare")
Run = Callable[..., str]


@pytest.fixture
def run(path: Path) -> Run:
    "Run a command line on the store at `path`; its output."
    def typed(*words: str, code: int = 0, stdin: str | None = None) -> str:
        done = CliRunner().invoke(main, list(words), input=stdin, prog_name="rlm", env={"RLM_DB_PATH": str(path)})
        assert done.exit_code == code, (done.output, done.exception)
        return done.output
    return typed


def test_a_command_that_reads_makes_no_store(run: Run, path: Path) -> None:
    assert "There is no store" in run("memory", "stats", code=1) and not path.exists()


def test_memories_are_written_found_corrected_and_erased(run: Run) -> None:
    run("memory", "write", "-", "--id", "dentist", stdin="다음 주 화요일에 치과 예약이 있어")
    made = json.loads(run("memory", "write", "Mina prefers green tea.", "The rent is due.", "와이파이는 거실에 있다", "--json"))
    assert len({m["id"] for m in made}) == 3 and len(json.loads(run("memory", "list", "--json"))) == 4
    assert json.loads(run("memory", "search", "green tea", "--json"))[0]["memory"] == made[0]
    assert "version 2" in run("memory", "update", "dentist", "--text", "치과는 취소했어")
    assert "Aborted" in run("memory", "delete", "dentist", "--erase", code=1, stdin="n\n")
    assert "1 memory erased" in run("memory", "delete", "dentist", "--erase", "--yes")
    assert "There is no memory" in run("memory", "show", "dentist", code=1)
    assert "not JSON" in run("memory", "write", "--jsonl", "-", code=1, stdin='{"text": "a"}\nnot json\n')


def test_what_ended_a_memory_is_told_in_words(run: Run) -> None:
    run("memory", "write", "I live in Seoul.", "--id", "seoul")
    run("memory", "write", "I moved to Busan.", "--id", "busan")
    for words in (["list", "--ended"], ["history", "seoul"], ["explain", "where do I live?", "seoul"]):
        assert "busan: I moved to Busan." in run("memory", *words), words
    run("memory", "update", "seoul", "--valid-to", "none")
    run("memory", "update", "seoul", "--valid-to", "2099-01-01")
    assert "busan" in run("memory", "history", "seoul") and "seoul" not in run("memory", "list", "--ended")


def test_another_program_gets_the_whole_text_of_a_memory(run: Run) -> None:
    text = "The garage code is on the blue note in the kitchen drawer, behind the old recipe book from grandmother."
    run("memory", "write", text)
    for words in (["search", "garage code"], ["recall", "garage code"], ["list"]):
        assert text in run("memory", *words), words


def test_everything_about_a_subject_is_shown_asked_about_and_forgotten(run: Run, path: Path) -> None:
    with Memory(path) as memory:
        memory.write_many([{"id": "note", "text": "The garage code is on the blue note."},
                           {"id": "old", "text": "Our garage's code was blue.", "valid_from": "2020-01-01", "valid_to": "2021-01-01"},
                           {"id": "put", "text": "Garage code: by Mina", "status": "archived"},
                           {"id": "door", "text": "The garage needs a new door."},
                           {"id": "kept", "text": "Never change the garage code.", "immutable": True},
                           {"id": "차고", "text": "차고 암호는 파란 쪽지에 있어"}, {"id": "차", "text": "차는 지하에 있어"}])
    asked = run("memory", "forget", "the garage code", code=1, stdin="n\n")
    assert all(id in asked for id in ("note", "old", "put", "these 3?")) and "door" not in asked and "kept" not in asked
    gone = json.loads(run("memory", "forget", "the garage code", "--keep", "put", "--yes", "--json"))
    assert gone["deleted"] == 2 and set(gone["ids"]) == {"note", "old"}
    assert json.loads(run("memory", "forget", "차고", "--yes", "--erase", "--json"))["ids"] == ["차고"]
    assert "Nothing is known" in run("memory", "forget", "the boat")
    with Memory(path) as memory:
        assert {r.id for r in memory.list(50, status="any")} == {"put", "door", "kept", "차"}
        assert memory.restore("note").text == "The garage code is on the blue note."


def test_who_can_still_open_an_erased_namespace_is_told(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RLM_TOKEN_FILE", str(tmp_path / "tokens"))
    for name in ("alice", "bob"):
        run("memory", "write", f"{name} likes jazz.", "-n", name)
    made = json.loads(run("tokens", "add", "-n", "alice", "-n", "shared", "--json"))
    assert f"rlm tokens revoke {made['id']}" in run("namespaces", "erase", "alice", "--yes")
    assert "oken" not in run("namespaces", "erase", "bob", "--yes")
    every = [word for n in range(300) for word in ("-n", f"agent-{n}")]
    wide = json.loads(run("tokens", "add", *every, "--json"))["id"]
    said = run("tokens", "rotate", wide, "--grace", "30m")
    assert "and 290 more to write" in said and len(run("tokens", "list").splitlines()[-1]) < 400
    for n in range(12):
        run("memory", "write", "Tea is ready.", "-n", f"agent-{n}")
    with monkeypatch.context() as later:
        later.setattr(Token, "valid_at", lambda token, moment: token.id != wide)
        assert f"Token {wide}" not in run("namespaces", "erase", "agent-7", "--yes")
    said = run("namespaces", "erase", "agent-77", "--yes", code=1)
    assert "Did you mean 'agent-" in said and "and 1 more." in said


@pytest.mark.seed("004 cli")
def test_anchors_are_set_pinned_and_carried(run: Run, path: Path, tmp_path: Path) -> None:
    with Memory(path) as memory:
        memory.write("녹차를 좋아해", id="tea")
        memory.write("The boat came in late.", id="boat")
    run("anchors", "pin", "A", code=1)
    kept = str(tmp_path / "anchors.json")
    for words in (["set", "A", "tea"], ["hops", "A", "3"], ["hops", "A", "auto"], ["pin", "B", "boat"], ["unpin", "A"], ["export", kept],
                  ["clear", "A"]):
        run("anchors", *words)
    assert "no slot 'D'" in run("anchors", "set", "D", "tea", code=1)
    assert "no memory 'milk'" in run("anchors", "set", "A", "milk", code=1)
    assert "tea" in run("anchors", "import", kept)


@pytest.mark.seed("004 cli")
def test_the_command_lines_of_the_design_run_as_it_prints_them(run: Run, path: Path) -> None:
    with Memory(path) as memory:
        memory.write("The topic is a boat.", id="blk_123")
    run("anchors", "set", "A", "blk_123")
    run("anchors", "pin", "A", "blk_123")
    assert "pinned" in run("anchors", "status")
    run("anchors", "unpin", "A")
    assert "pinned" not in run("anchors", "status")
    assert "blk_123" in run("memory", "search", "topic", "--slot", "A", "--radius", "2", "--top-k", "8")
    run("memory", "write", "new fact...", "--slot", "B", "--policy", "link_k=8,min_w=0.35")
    assert "new fact" in run("anchors", "status")


def test_links_are_made_shown_and_carried(run: Run, path: Path, tmp_path: Path) -> None:
    with Memory(path, clock=ManualClock("2026-11-21T09:00:00Z")) as memory:
        memory.write_many([{"id": id, "speaker": who, "text": text, "session": "mon"} for id, who, text in [
            ("boat", "Mina", "The boat came in late."), ("supper", "서연", "그래서 저녁을 늦게 먹었어"),
            ("fish", "Mina", "With the fish we caught?")]])
    assert "3 links added" in run("graph", "bootstrap") and "Nothing has changed" in run("graph", "bootstrap")
    run("graph", "bootstrap", "--alpha", "2", code=1)
    kept = str(tmp_path / "graph.jsonl")
    assert "3 links written" in run("graph", "export", kept) and "0 of them new" in run("graph", "import", kept)
    shown = run("graph", "show", "boat")
    assert len(shown.splitlines()) == 5 and "늦게 먹었어" in shown and "origin" in run("graph", "stats")


def test_rules_are_added_applied_and_judged(run: Run) -> None:
    run("rules", "add", "Green tea in the morning.", "--formal", "when hour < 11 then drink = 'tea'", "--id", "tea", "--tag", "drinks")
    run("rules", "add", "회의 전에는 커피", "--formal", "when 회의 then drink = '커피'", "--id", "coffee", "--tag", "drinks")
    assert "tea" in run("rules", "apply", "hour=9", "회의=true", "--resolve")
    run("rules", "add", "wrong", "--formal", "when hour < then drink = 'tea'", code=1)
    run("rules", "used", "coffee", "--helped", "5")
    assert json.loads(run("rules", "run-jobs", "--json"))["counts"] == {"promote": 1}
    assert json.loads(run("rules", "list", "--status", "ltm", "--json"))[0]["rule_id"] == "coffee"


@pytest.mark.parametrize(("text", "fact"), [("a=1.5", ("a", 1.5)), ("a=true", ("a", True)), ("도시=서울", ("도시", "서울")),
                                            ("x=NaN", ("x", "NaN"))])
def test_facts_are_read_as_they_are_typed(text: str, fact: tuple[str, object]) -> None:
    assert read_fact(text) == fact


@pytest.mark.parametrize("words", [("rules", "apply", "age=70", "vip=true", "age=71"),
                                   ("context", "tea?", "--fact", "age=70", "--fact", "age=71")])
def test_a_fact_that_is_given_twice_is_refused_with_a_remedy(run: Run, words: tuple[str, ...]) -> None:
    run("memory", "write", "I like tea.")
    assert "The fact 'age' is given twice. Give it once" in " ".join(run(*words, code=1).split())


@pytest.mark.parametrize("read", [lambda: cosines("e5=.3, m2v=.4, e5=.5"), lambda: read_policy("link_k=8,min_w=.3,link_k=9"),
                                  lambda: read_prices("a=1/2; *=1/4; a=2/3")])
def test_a_name_that_stands_twice_in_a_text_of_pairs_is_refused(read: Callable[[], object]) -> None:
    with pytest.raises(ValueError, match="is given twice"):
        read()


def test_a_store_is_exported_checked_backed_up_and_restored(run: Run, path: Path, tmp_path: Path) -> None:
    with Memory(path) as memory:
        memory.write_many(["I am allergic to peanuts.", "다음 주 화요일에 치과 예약이 있어"])
    lines, backup, other = str(tmp_path / "store.jsonl"), str(tmp_path / "monday.db"), str(tmp_path / "copy.db")
    assert "All is well" in run("db", "check")
    run("db", "export", lines)
    assert "2 added" in run("db", "import", lines, "--db", other) and "2 unchanged" in run("db", "import", lines, "--db", other)
    run("db", "backup", backup)
    run("db", "backup", backup, code=1)
    assert "Aborted" in run("db", "restore", backup, code=1, stdin="n\n")
    run("db", "restore", backup, "--db", str(tmp_path / "new.db"))
    assert "Replace" not in run("db", "restore", str(tmp_path / "missing.db"), code=1)


def test_the_policy_says_what_it_decides_and_is_taught_in_one_namespace(run: Run, path: Path) -> None:
    with Memory(path) as memory:
        memory.write("hello")
    turn = "The train was late again."
    first = json.loads(run("policy", turn, "--json"))["now"]["save"]
    right = "skip" if first else "save"
    with Memory(path) as memory:
        for _ in range(40):
            memory.companion.learn(memory.companion.decide(turn), right)
    taught = json.loads(run("policy", turn, "--feedback", right, "--json"))
    assert taught["reward"] == 1 and taught["now"]["save"] == (right == "save")
    assert json.loads(run("policy", turn, "--json", "-n", "other"))["now"]["save"] == first
    assert "Learned -1: it was given as a number" in run("policy", turn, "--feedback", "-1")
    assert "Nothing was learned" in run("policy", turn, "--feedback", "The sky is blue and high today.")
    assert "from -1 (wrong) to 1 (right)" in run("policy", turn, "--feedback", "7", code=1)


def test_a_ranker_is_trained_from_what_helped_and_forgotten(run: Run, path: Path, tmp_path: Path) -> None:
    with Memory(path) as memory:
        for n in range(30):
            thing = f"{('red', 'blue', 'old')[n % 3]} {('boat', 'house', 'river', 'train', 'garden')[n % 5]} {n}"
            memory.write_many([{"text": f"What about the {thing}?", "role": "user"},
                               {"id": f"a{n}", "text": f"The {thing} is in Harbour Street.", "role": "assistant"}])
            memory.record_usage(f"a{n}", query=f"where is the {thing}", success=int(n > 0))
    assert "1 helped" in run("memory", "used", "a0", "--query", "where is the red boat 0", "--helped", "1")
    assert json.loads(run("train-ranker", "--json"))["kept"]
    with Memory(path) as memory:
        hits = memory.search("where is the blue house 1", k=1)
        assert hits[0].memory.role == "assistant" and "recorded use" in hits.ranked_by
    labels = tmp_path / "labels.jsonl"
    labels.write_text("".join(json.dumps({"query": f"where is the boat {n}", "relevant": ["not-here"]}) + "\n" for n in range(25)))
    refused = run("train-ranker", "--questions", str(labels), code=1)
    assert "There are 0 questions" in refused and "Of 25 more" in refused
    assert "forgotten" in run("train-ranker", "--forget") and "There is no memory" in run("memory", "used", "nobody", code=1)
    run("memory", "used", "a0", "--helped", "-1", code=1)


def test_recall_says_which_layer_answered_and_the_status_shows_what_is_in_mind(run: Run, path: Path,
                                                                               monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RLM_CHECKPOINTS", "full")
    with Memory(path, clock=ManualClock("2026-05-08T09:00:00Z")) as memory:
        memory.write_many([{"id": "train", "text": "The train leaves at nine."}, {"id": "boat", "text": "Mina's boat has a red sail."},
                           {"id": "sail", "text": "The sail of the boat is torn."}, {"id": "paint", "text": "The boat was painted blue."}])
    assert "from ltm_fallback" in run("memory", "recall", "Which boat has a sail?")
    assert '"source": "checkpoint"' in run("memory", "recall", "Which boat has a sail?", "--json")
    assert "W1" in run("attention", "status")


def test_tokens_are_shown_once_and_revoked(run: Run, tmp_path: Path) -> None:
    file = ["--token-file", str(tmp_path / "tokens")]
    made = json.loads(run("tokens", "add", "-n", "팀", *file, "--json"))
    assert made["token"].startswith("rlm_") and made["token"] not in (tmp_path / "tokens").read_text()
    assert made["id"] in run("tokens", "list", *file) and "is revoked" in run("tokens", "revoke", made["id"], *file)
    assert "There is no token" in run("tokens", "revoke", made["id"], *file, code=1)
    run("tokens", "add", "--right", "all", *file, code=2)


def test_options_of_the_store_stand_anywhere(run: Run, tmp_path: Path) -> None:
    other = str(tmp_path / "other.db")
    run("--db", other, "-n", "work", "memory", "write", "The boat is red.", "--id", "boat")
    run("memory", f"--db={other}", "-nwork", "write", "보트는 파란색이야")
    for words in (["--json", "--db", other, "memory", "-n", "work", "list"], ["memory", "list", "--json", "--db", other, "-n", "work"]):
        assert {m["text"] for m in json.loads(run(*words))} == {"The boat is red.", "보트는 파란색이야"}
    assert "No such option" in run("--colour", "memory", "list", code=2)
    assert "There is no memory" in run("--db", other, "memory", "show", "boat", code=1)
    assert "-n" in run("--db", other, "memory", "write", "--id", "dash", "--", "-n is an option") and "Usage" in run("--db", other, code=2)


def test_words_without_quotes_are_one_memory(run: Run) -> None:
    run("memory", "write", "I", "am", "allergic")
    run("memory", "write", "땅콩은", "안", "돼요")
    assert "Put quotes" in run("memory", "write", "I", "am", "allergic to peanuts", code=1)
    assert {m["text"] for m in json.loads(run("memory", "list", "--json"))} == {"I am allergic", "땅콩은 안 돼요"}


def test_errors_are_json_where_json_was_asked_for(run: Run) -> None:
    assert json.loads(run("memory", "show", "x", "--json", code=1))["error"]["message"].startswith("There is no store")
    assert json.loads(run("--json", "memory", "show", code=2))["error"]["message"].startswith("Missing argument")
    assert json.loads(run("memory", "write", " ", "--json", code=1))["error"]["hint"]


@pytest.mark.parametrize("words", ["--quiet --json memory search", "memory search -q --json", "--json memory nosuch", "--bogus --json",
                                   "-q rules --json --odd"])
def test_words_that_are_wrong_are_told_as_json_however_quiet(words: str) -> None:
    done = CliRunner().invoke(main, words.split())
    assert done.exit_code == 2 and done.stdout == "" and json.loads(done.stderr)["error"]["hint"] == "See --help.", done.output


def test_quiet_tells_the_result_alone(run: Run) -> None:
    run("memory", "write", "The boat is red.", "--id", "boat")
    told, quiet = run("mcp", "install", "--client", "cursor"), run("mcp", "install", "--client", "cursor", "--quiet")
    assert "Put this into" in told and json.loads(quiet)["mcpServers"]["rlm"] and json.loads(run("-q", "memory", "show", "boat", "--json"))
    assert "There is no memory" in run("--quiet", "memory", "show", "nobody", code=1)


def test_a_conversation_is_stored_and_read(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "turns.jsonl"
    turns = [{"speaker": "Mina", "text": "언제 만날까?", "session": "june"}, {"speaker": "Jun", "text": "Tuesday!"}]
    file.write_text("\n".join(map(json.dumps, turns)), encoding="utf-8")
    assert "2 turns stored in conversation june" in run("conversation", "add", str(file))
    shown = run("conversation", "show", "june")
    assert shown.index("언제 만날까?") < shown.index("Tuesday!")
    assert "There is no conversation" in run("conversation", "show", "july", code=1)
    two = '{"text": "a", "session": "1"}\n{"text": "b", "session": "2"}\n'
    assert "conversations" in run("conversation", "add", "-", code=1, stdin=two)
    assert "no turn" in run("conversation", "add", "-", code=1, stdin="\n")


def test_a_shell_completes_names_without_loading_what_they_do(run: Run) -> None:
    assert "_RLM_COMPLETE" in run("completion", "bash") and "compdef" in run("completion", "zsh") and "rlm" in run("completion", "fish")
    asked = {"_RLM_COMPLETE": "bash_complete", "COMP_WORDS": "rlm me", "COMP_CWORD": "1"}
    assert CliRunner().invoke(main, [], prog_name="rlm", env=asked).output.splitlines() == ["plain,memory"]


@pytest.mark.parametrize("deletion", [["delete", "new"], ["forget", "Busan", "--yes"]])
def test_what_is_current_again_without_a_deleted_memory_is_said(deletion: list[str], run: Run, path: Path) -> None:
    with Memory(path, embedder="none") as memory:
        memory.write("I live in Seoul.", id="old")
        memory.write("I moved to Busan.", id="new")
        assert memory.get("old").valid_to is not None
    told = run("memory", *deletion)
    assert "1 memory deleted." in told and "Current again, as what had ended it is gone: old  I live in Seoul." in told


def test_what_is_current_again_is_in_json(run: Run, path: Path) -> None:
    with Memory(path, embedder="none") as memory:
        memory.write("I live in Seoul.", id="old")
        memory.write("I moved to Busan.", id="new")
    assert json.loads(run("memory", "delete", "new", "--json")) == {"deleted": 1, "current_again": ["old"]}


def test_a_list_of_rules_says_that_there_are_more_and_no_offender_is_no_table(run: Run) -> None:
    for n in range(3):
        run("rules", "add", f"rule {n}", "--formal", f"when 회의 then drink = {n}", "--id", f"r{n}")
    assert "These are the first 2; -k 4 shows more." in run("rules", "list", "-k", "2")
    assert "shows more" not in run("rules", "list", "-k", "3")
    assert run("rules", "conflicts", "--offenders").strip() == "no offenders" and run("rules", "conflicts").strip() == "no conflicts"
    assert "rules read a truth value" in run("rules", "apply", "회의=1", "--resolve")
