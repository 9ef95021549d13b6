"Four sources, one order; a typo in any of them is an error that names it."
import ast
import os
import re
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from rlm import Memory
from rlm.core.errors import SettingsError
from rlm.core.settings import FILES, KNOWN, Settings, load_settings, settings_file

OTHER = {"db_path": "elsewhere.db", "namespace": "team", "synchronous": "full", "busy_timeout_s": 1.5, "max_text_chars": 99, "search_k": 3,
         "anchor_mode": "economy", "anchor_gates": "e5=.3,m2v:x=.4", "anchor_boost": .5,
         "anchor_profiles": '{"thesis": {"hops": 3, "new": 3, "beam": 64}}',
         "checkpoints": "full", "checkpoints_per_slot": 3, "checkpoint_radius": 4, "checkpoint_relevance": 2.5, "local_limit": 300,
         "secrets": "refuse", "supersede": "off", "graph_rag": "on", "recall_log": 50,
         "language": "ko", "policy_save": .8, "policy_skip": .2, "policy_epsilon": .2, "enhanced_policy": "on",
         "reward_continued": .4, "reward_extended": .1,
         "reward_indifferent": -.2, "log_level": "info",
         "sleep": "forget", "sleep_limit": 5, "forget_decay": .5, "forget_link": .2, "forget_compress": .4,
         "forget_archive": .2, "forget_days": 7.0,
         "embedder": "none", "embedding": "later", "embedding_url": "http://localhost:8080/v1", "embedding_key": "sk-other",
         "cache": "kept",
         "model": "openai:x", "openai_url": "http://localhost:1/v1", "openai_key": "sk-a", "anthropic_url": "http://localhost:2/v1",
         "anthropic_key": "sk-b", "model_prices": "1/2", "model_timeout_s": 9.0,
         "model_sub": "openai:y", "model_judge": "openai:z", "model_extract": "openai:z", "model_calls": "native",
         "model_options": '{"seed": 1}', "mcp_servers": "rlm mcp\nenv A=1 other",
         "n_promote": 7, "k_fail": 2, "k_fail_total": 4, "k_fail_realtime": 5, "max_fail_rate": .01, "ttl_hot": 9.5, "ttl_ltm": 99.0,
         "time_zone": "Asia/Seoul", "solver_timeout_s": 2.5, "rule_webhook": "http://localhost:3/held",
         "serve_host": "::1", "serve_port": 80, "serve_names": "memory,box", "token_file": "keys", "serve_max_body": 9, "serve_rate": 1.5,
         "access_log": "access.jsonl", "metrics_prefix": "greeum", "traces": "console"}
pytestmark = pytest.mark.usefixtures("bare")


@pytest.fixture
def here(bare: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return tmp_path


def test_the_samples_of_this_file_cover_every_setting() -> None:
    assert OTHER.keys() == KNOWN.keys()
    assert all(load_settings(environment={}, **OTHER).table()[i][2] == "argument" for i in range(len(KNOWN)))


@pytest.mark.parametrize("name", KNOWN)
def test_every_setting_can_come_from_each_source_and_the_nearer_one_wins(name: str, here: Path) -> None:
    kind = type(getattr(Settings(), name))
    words = dict.fromkeys(("db_path", "namespace", "embedder", "embedding_key", "cache", "model", "openai_key",
                           "anthropic_key", "model_prices", "model_sub", "model_judge", "model_extract", "mcp_servers"), ("f", "e", "a"))
    words |= dict.fromkeys(("serve_host", "serve_names", "token_file", "access_log"), ("f", "e", "a"))
    words |= dict.fromkeys(("embedding_url", "openai_url", "anthropic_url", "rule_webhook"), ("http://f", "http://e", "http://a"))
    words |= {"model_calls": ("native", "fenced", "native"), "model_options": ('{"a": 1}', '{"a": 2}', '{"a": 3}')}
    words |= {"time_zone": ("Asia/Seoul", "Europe/Berlin", "UTC")}
    words |= {"checkpoints": ("create", "parallel", "full")}
    words |= {"anchor_mode": ("economy", "reactive", "economy"), "anchor_gates": ("f=.1", "e=.2", "a=.3"),
              "anchor_profiles": tuple(f'{{"thesis": {{"hops": {n}, "new": 3}}}}' for n in (1, 2, 3))}
    nearer = words | {"max_fail_rate": (.1, .2, .3), "synchronous": ("full", "normal", "full"), "secrets": ("allow", "refuse", "allow"),
                      "metrics_prefix": ("greeum", "rlm", "greeum"), "embedding": ("now", "later", "now"),
                      "supersede": ("off", "on", "off"), "graph_rag": ("on", "off", "on"),
                      "sleep": ("off", "forget", "off"), "language": ("en", "ko", "en"),
                      "enhanced_policy": ("on", "off", "on"),
                      "policy_epsilon": (.2, .3, .4), "reward_continued": (.1, .2, .4), "reward_extended": (.1, .3, .4),
                      "reward_indifferent": (.1, .2, .3), "log_level": ("info", "error", "debug"),
                      "traces": ("console", "off", "otlp")}
    file, environment, argument = nearer.get(name, (1, 2, 3))
    default = load_settings(environment={})
    assert getattr(default, name) == getattr(Settings(), name) and name not in default.sources
    Path("rlm.yaml").write_text(f"{name}: {file}\n", encoding="utf-8")
    env = {f"RLM_{name.upper()}": str(environment)}
    for found, value, source in [
            (load_settings(environment={}), file, "file rlm.yaml"),
            (load_settings(environment=env), environment, f"environment RLM_{name.upper()}"),
            (load_settings(environment=env, **{name: argument}), argument, "argument"),
            (load_settings(environment=env, **{name: None}), environment, f"environment RLM_{name.upper()}")]:
        assert getattr(found, name) == kind(value) and type(getattr(found, name)) is type(getattr(default, name))
        assert found.sources[name] == source
        shown = "***" if name.endswith("_key") else str(kind(value))
        assert (name, shown, source) in [row[:3] for row in found.table()] and source in repr(found)


@pytest.mark.parametrize(("name", "off"), [("traces", True), ("checkpoints", True), ("supersede", True), ("sleep", True),
                                         ("secrets", False),
                                                      ("model", False)])
def test_what_yaml_takes_for_false_is_off_where_there_is_such_a_choice(name: str, off: bool, here: Path) -> None:
    Path("rlm.yaml").write_text(f"{name}: off\n", encoding="utf-8")
    if off:
        assert getattr(load_settings(environment={}), name) == "off"
    else:
        with pytest.raises(SettingsError):
            load_settings(environment={})


@pytest.mark.seed("000 rml_config")
def test_the_settings_file_that_ships_tells_every_setting_with_its_default() -> None:
    text = settings_file()
    rows = {name.lower(): (mark, value) for mark, name, value in re.findall(r"^(# )?(\w+): (.+)$", text, re.MULTILINE)}
    assert rows.keys() == KNOWN.keys(), "the settings file does not tell all settings, or a comment reads like one"
    for name, (mark, value) in rows.items():
        assert KNOWN[name]["read"](yaml.safe_load(value)) == ("YOUR-KEY" if name.endswith("_key") else getattr(Settings(), name)), name
        assert name not in ("n_promote", "k_fail", "ttl_hot", "ttl_ltm") or not mark
    assert all(f"{name}: " in text for name in ("N_promote", "K_fail", "K_fail_total", "K_fail_realtime", "TTL_hot", "TTL_ltm"))


@pytest.mark.parametrize("name", FILES)
def test_each_file_name_is_read(name: str, here: Path) -> None:
    file = Path(name).expanduser()
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("search_k: 7", encoding="utf-8")
    assert load_settings(environment={}).search_k == 7
    assert "rml_config.yaml" in FILES and "rlm.yaml" in FILES


def test_a_named_file_replaces_the_usual_ones_and_must_exist(here: Path) -> None:
    Path("rlm.yaml").write_text("search_k: 7\nnamespace: near", encoding="utf-8")
    Path("mine.yaml").write_text("search_k: 8", encoding="utf-8")
    Path("env.yaml").write_text("search_k: 9", encoding="utf-8")
    assert load_settings("mine.yaml", environment={"RLM_CONFIG": "env.yaml"}).search_k == 8
    found = load_settings(environment={"RLM_CONFIG": "env.yaml"})
    assert (found.search_k, found.namespace) == (9, "default")
    for config, env in (("gone.yaml", {}), (None, {"RLM_CONFIG": "gone.yaml"}), (".", {})):
        with pytest.raises(SettingsError, match=r"settings file .* can't be read"):
            load_settings(config, environment=env)


def test_the_companion_s_variable_names_the_store_too_and_ours_is_nearer() -> None:
    assert load_settings(environment={"AIMEMORY_DB_PATH": "a.db"}).db_path == Path("a.db")
    both = load_settings(environment={"AIMEMORY_DB_PATH": "a.db", "RLM_DB_PATH": "b.db"})
    assert (both.db_path, both.sources["db_path"]) == (Path("b.db"), "environment RLM_DB_PATH")


def test_an_empty_variable_is_not_given() -> None:
    assert load_settings(environment={"RLM_SEARCH_K": "", "AIMEMORY_DB_PATH": "", "RLM_CONFIG": ""}) == Settings()


@pytest.mark.parametrize(("env", "named"), [({"RLM_DB_PAHT": "x"}, "RLM_DB_PATH"), ({"RLM_SEARCHK": "3"}, "RLM_SEARCH_K"),
                                            ({"RLM_NAMESPCE": "x"}, "RLM_NAMESPACE"), ({"AIMEMORY_DB_PAHT": "x"}, "AIMEMORY_DB_PATH"),
                                            ({"RLM_CONFG": "x"}, "RLM_CONFIG")])
def test_a_near_miss_in_the_environment_is_named(env: dict[str, str], named: str) -> None:
    with pytest.raises(SettingsError, match=f"{next(iter(env))} is no setting.*{named}"):
        load_settings(environment=env)


def test_other_people_s_variables_are_let_be() -> None:
    load_settings(environment={"RLM_SHARED": "x", "RLM_NOTEBOOK_TIMEOUT": "5", "PATH": "x", "DB_PATH": "x"})


@pytest.mark.parametrize("wrong", ["db_paht: x", "- a\n- b", "just words", "a: [", "search_k: 3\n b: 4", "\x00", "5: 6", "null: 3",
                                   "search_k: 1\nsearch_k: 2"])
def test_a_settings_file_that_says_something_unknown_is_refused_with_its_name(wrong: str, here: Path) -> None:
    Path("rlm.yaml").write_text(wrong, encoding="utf-8")
    with pytest.raises(SettingsError, match=r"rlm\.yaml") as error:
        load_settings(environment={})
    assert error.value.hint


def test_capitals_in_a_file_do_not_matter_and_spans_may_say_days(here: Path) -> None:
    Path("rml_config.yaml").write_text("N_promote: 7\nTTL_hot: 14 d\n", encoding="utf-8")
    found = load_settings(environment={})
    assert (found.n_promote, found.ttl_hot) == (7, 14.0)
    Path("rml_config.yaml").write_text("N_promote: 7\nn_promote: 8\n", encoding="utf-8")
    with pytest.raises(SettingsError, match="twice"):
        load_settings(environment={})


def test_a_settings_file_in_another_encoding_is_refused(here: Path) -> None:
    Path("rlm.yaml").write_bytes("namespace: 가족".encode("euc-kr"))
    with pytest.raises(SettingsError, match=r"rlm\.yaml"):
        load_settings(environment={})


def test_a_settings_file_is_data_and_runs_nothing(here: Path) -> None:
    Path("rlm.yaml").write_text("namespace: !!python/object/apply:os.system ['touch ran']", encoding="utf-8")
    with pytest.raises(SettingsError):
        load_settings(environment={})
    assert not Path("ran").exists()


def test_an_empty_settings_file_says_nothing(here: Path) -> None:
    Path("rlm.yaml").write_text("# nothing yet\n", encoding="utf-8")
    assert load_settings(environment={}) == Settings()


WRONG: dict[str, list[Any]] = {
    "db_path": ["", " ", 5, True, ["x"]], "namespace": ["", 5, True, ["x"], "a\0b", "a\nb", "\ud800", "x" * 600],
    "synchronous": ["off", "", 1, None.__class__], "busy_timeout_s": [-1, 1e9, "long", "nan", "inf", True, []],
    "max_text_chars": [0, -5, 1.5, "many", 10**12, False], "search_k": [0, -1, 2.5, "ten", 10**9, True, {}],
    "n_promote": [0, -1, 1.5, "five", True], "k_fail": [-1, "one"], "max_fail_rate": [-.1, 1.1, "half"], "ttl_hot": [-1, "30 h", "d", True],
    "solver_timeout_s": [0, -1, "long"], "time_zone": ["Seoul", "../etc", "", 9]}


@pytest.mark.parametrize(("name", "value"), [(n, v) for n, vs in WRONG.items() for v in vs])
def test_a_wrong_value_is_refused_naming_setting_and_source(name: str, value: object) -> None:
    with pytest.raises(SettingsError, match=f"{name} from argument") as error:
        load_settings(environment={}, **{name: value})
    assert error.value.hint == KNOWN[name]["about"]


@pytest.mark.parametrize("name", ["db_paht", "k", "path", "sources", ""])
def test_an_unknown_argument_is_refused(name: str) -> None:
    with pytest.raises(SettingsError, match="no setting"):
        load_settings(environment={}, **{name: "x"})
    with pytest.raises(SettingsError):
        Memory(":memory:", search_kk=5)


@given(st.sampled_from(sorted(KNOWN)), st.one_of(st.text(max_size=12), st.integers(), st.floats(), st.booleans(), st.binary(max_size=3)))
def test_any_value_is_taken_or_refused_plainly(name: str, value: object) -> None:
    with suppress(SettingsError):
        found = getattr(load_settings(environment={}, **{name: value}), name)
        assert isinstance(found, str | Path | int | float)


def test_numbers_may_be_written_with_underscores() -> None:
    assert load_settings(environment={"RLM_MAX_TEXT_CHARS": "2_000_000"}).max_text_chars == 2_000_000


def attributes_of_settings(source: str) -> set[str]:
    "The names read as `settings.name`, whatever `settings` hangs on."
    def is_settings(node: ast.expr) -> bool:
        return (isinstance(node, ast.Name) and node.id == "settings") or (isinstance(node, ast.Attribute) and node.attr == "settings")
    return {n.attr for n in ast.walk(ast.parse(source)) if isinstance(n, ast.Attribute) and is_settings(n.value)}


def test_every_setting_is_read_by_something(root: Path) -> None:
    read = set[str]()
    for module in (root / "rlm").rglob("*.py"):
        read |= attributes_of_settings(module.read_text(encoding="utf-8"))
    assert KNOWN.keys() <= read, "a setting that nothing reads promises what it does not do"


def test_every_setting_is_told_of(root: Path) -> None:
    told = (root / "docs" / "operations.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `(\w+)`.* \| (.+) \|$", told, re.MULTILINE))
    assert {name: rows.get(name) for name in KNOWN} == {name: meta["about"] for name, meta in KNOWN.items()}


def test_the_settings_do_what_they_say(here: Path) -> None:
    with Memory(here / "m.db", namespace="team", synchronous="full", busy_timeout_s=1.5, max_text_chars=20, search_k=2) as memory:
        for n in range(4):
            memory.write(f"note {n}")
        assert memory.ctx.namespace == "team" and len(memory.search("note")) == 2 and len(memory.search("note", k=3)) == 3
        with pytest.raises(ValueError, match="20 are allowed"):
            memory.write("x" * 21)
        assert memory.backend.db.query("PRAGMA synchronous") == [(2,)]
        assert memory.backend.db.query("PRAGMA busy_timeout") == [(1500,)]
    with Memory(here / "m.db") as memory:
        assert memory.backend.db.query("PRAGMA synchronous") == [(1,)]


def test_the_store_s_path_may_start_at_home(here: Path) -> None:
    os.environ["HOME"] = str(here)
    (here / "deep" / "er").mkdir(parents=True)
    with Memory("~/deep/er/m.db") as memory:
        memory.write("hello")
    assert (here / "deep" / "er" / "m.db").exists()


@pytest.mark.seed("002 configuration")
def test_the_sections_of_the_companions_design_are_read(here: Path) -> None:
    text = ("forgetting:\n  decay_lambda: 0.1\n  delete_days: 7 d\nonline_policy:\n  epsilon: 0.2\nollama:\n  model: qwen2.5:1.5b\n"
            "  url: http://localhost:11434/v1\nsearch_k: 3\n")
    Path("rlm.yaml").write_text(text, encoding="utf-8")
    found = load_settings(environment={})
    assert (found.forget_decay, found.forget_days, found.policy_epsilon, found.search_k) == (0.1, 7.0, 0.2, 3)
    assert (found.model, found.openai_url) == ("openai:qwen2.5:1.5b", "http://localhost:11434/v1")
    for wrong, said in (("forgetting:\n  lambda: 1\n", "unknown key 'lambda'"), ("reward: 3\n", "holds a int"),
                        ("sleep: off\nsleep_cycle:\n  mode: tidy\n", "twice"), ("gossip:\n  interval_s: 60\n", "rlm federation init"),
                        ("self_play:\n  turns: 9\n", "rlm bench year"), ("dataset:\n  train: .8\n", "train-ranker"),
                        ("reranker:\n  pool: 20\n", "train-ranker"), ("composer:\n  budget: 9\n", "tokens")):
        Path("rlm.yaml").write_text(wrong, encoding="utf-8")
        with pytest.raises(SettingsError, match=said):
            load_settings(environment={})


@pytest.mark.seed("002 configuration")
@pytest.mark.parametrize(("variable", "given", "name", "value"), [
    ("AIMEMORY_ENHANCED_POLICY", "1", "enhanced_policy", "on"), ("AIMEMORY_ENHANCED_POLICY", "0", "enhanced_policy", "off"),
    ("AIMEMORY_LANGUAGE", "ko", "language", "ko"), ("AIMEMORY_GRAPH_RAG", "1", "graph_rag", "on"),
    ("AIMEMORY_LOG_LEVEL", "INFO", "log_level", "info"),
    ("AIMEMORY_EMBEDDING_MODEL", "intfloat/multilingual-e5-small", "embedder", "e5"),
    ("AIMEMORY_EMBEDDING_MODEL", "BAAI/bge-m3", "embedder", "st:BAAI/bge-m3")])
def test_the_variables_of_the_companions_design_are_read(variable: str, given: str, name: str, value: str) -> None:
    assert getattr(load_settings(environment={variable: given}), name) == value


def test_the_language_of_the_settings_is_the_one_that_turns_are_read_in() -> None:
    for language, saved in (("both", (True, True)), ("en", (True, False)), ("ko", (False, True))):
        with Memory(":memory:", embedder="none", language=language) as memory:
            turns = ("Please remember: the spare fuse is in the drawer.", "기억해 줘, 퓨즈는 서랍에")
            assert tuple(memory.companion.decide(t).save for t in turns) == saved, language


@pytest.mark.parametrize("address", ["postgressql://me@db/memories", "mysql://db/memories", "file:///memory.db"])
def test_a_misspelt_address_makes_no_folder_of_its_name(address: str, bare: Path) -> None:
    for path in (address, Path(address)):
        with pytest.raises(SettingsError, match="begins with postgresql://"):
            Memory(path)
    assert not any(bare.iterdir())
