"Rules over HTTP: added, listed, applied, resolved and judged as in Python."
import threading
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import httpx
import pytest
from serving import problem, serving

from rlm import Memory
from rlm.rules import ConflictResolver

pytestmark = pytest.mark.usefixtures("bare")


@pytest.fixture
def client(path: Path) -> Iterator[httpx.Client]:
    with serving(path) as running, running.client() as made:
        yield made


@pytest.mark.seed("000 rest")
def test_rules_are_added_applied_resolved_and_judged(client: httpx.Client) -> None:
    tea = {"rule_id": "차", "expr": "아침에는 차를 마신다", "formal": "when hour < 11 then drink = '차'", "tags": ["drink"]}
    cola = {"rule_id": "cola", "formal": "when hour < 11 then drink = 'cola'"}
    for body in (tea, cola):
        answer = client.post("/v1/rules", json=body)
        assert answer.status_code == 201, answer.text
        assert client.get(answer.headers["Location"]).json() == answer.json()
        assert {**answer.json(), **body} == answer.json()
    assert client.post("/v1/rules", json=tea).status_code == 409
    fired = client.post("/v1/rules:apply", json={"facts": {"hour": 9}}).json()["fired"]
    assert {f["rule_id"]: f["effects"] for f in fired} == {"cola": {"drink": "cola"}, "차": {"drink": "차"}}
    assert client.post("/v1/rules:apply", json={"facts": {"hour": 12}}).json()["fired"] == []
    used = client.post("/v1/rules/차/used", json={"helped": 3}).json()
    assert (used["success"], used["confidence"]) == (3, .8)
    decided = client.post("/v1/rules:apply", json={"facts": {"hour": 9}, "resolve": True}).json()
    assert (decided["outcomes"], decided["agreed"], decided["rulings"][0]["losers"]) == ({"drink": "차"}, False, ["cola"])
    assert client.post("/v1/rules/cola/hold", json={"reason": "the doctor says so"}).json()["status"] == "held"
    assert client.post("/v1/rules:apply", json={"facts": {"hour": 9}, "resolve": True}).json()["agreed"]
    assert [r["rule_id"] for r in client.get("/v1/rules").json()["rules"]] == ["차"]
    assert [r["rule_id"] for r in client.get("/v1/rules", params={"status": "any"}).json()["rules"]] == ["차", "cola"]
    assert client.post("/v1/rules/cola/release", json={}).json()["status"] == "hot"
    assert [f["rule_id"] for f in client.post("/v1/rules:apply", json={"facts": {"hour": 9}, "tags": ["drink"]}).json()["fired"]] == ["차"]


def test_the_log_of_conflicts_is_asked(path: Path, client: httpx.Client) -> None:
    for name in ("차", "cola"):
        client.post("/v1/rules", json={"rule_id": name, "formal": f"when hour < 11 then drink = '{name}'"})
    with Memory(path, embedder="none") as memory:
        ConflictResolver(memory.rules).decide({"hour": 9})
    found = client.get("/v1/rules:conflicts", params={"rule": "차", "verdict": "unknown"}).json()
    assert [(d["rules"], d["stage"], d["verdict"]) for d in found["conflicts"]] == [(["cola", "차"], "tie-break", "unknown")]
    assert client.get("/v1/rules:conflicts", params={"stage": "vote"}).json() == {"conflicts": [], "offenders": []}
    assert client.get("/v1/rules:conflicts", params={"since": "tomorrow"}).status_code == 422
    judged = client.post("/v1/rules:judge", json={"conflict": "last", "verdict": "wrong"}).json()
    assert (judged["verdict"], judged["judge"]) == ("wrong", "person")
    [(winner, fail)] = [(i, client.get(f"/v1/rules/{i}").json()["fail"]) for i in judged["winners"]]
    events = client.get(f"/v1/rules/{winner}/history").json()["events"]
    assert fail == 1 and [e["event"] for e in events][-1] == "use" and client.get("/v1/rules/nobody/history").status_code == 404
    assert client.post("/v1/rules:judge", json={"conflict": "last", "verdict": "right"}).status_code == 422  # once
    found = client.get("/v1/rules:audit").json()
    assert found["counts"] == {"contradiction": 1} and found["findings"][0]["rules"] == ["cola", "차"]
    table = {"table": 'first,when 시각,then 음료\nx,< 11,"""차"""\ny,-,"""물"""\n'}
    assert [client.post("/v1/rules:table", json=table).json() for _ in range(2)] == [
        {"added": 2, "unchanged": 0, "refused": {}}, {"added": 0, "unchanged": 2, "refused": {}}]
    wrong = client.post("/v1/rules:table", json={"table": "unique,when a,then b\n,>,1\n"})
    assert wrong.status_code == 422 and "row 2, column B (when a)" in wrong.text


def test_a_decision_is_recorded_over_http_and_a_rule_changed(client: httpx.Client) -> None:
    for name, formal in (("물", "when hour < 11 then drink = '물'"), ("rum", "when hour < 11 then drink = 'rum' and adult"),
                         ("law", "when drink == 'rum' then adult = False")):
        assert client.post("/v1/rules", json={"rule_id": name, "formal": formal}).status_code == 201
    asked = {"facts": {"hour": 9}, "record": True}
    decided = client.post("/v1/rules:apply", json=asked).json()
    assert decided["rulings"][0]["rules"] == ["rum", "물"] and not decided["agreed"]
    assert client.post("/v1/rules:apply", json={"facts": {"hour": 9}, "resolve": True}).status_code == 200
    [logged] = client.get("/v1/rules:conflicts").json()["conflicts"]
    assert logged["rules"] == ["rum", "물"], "what is resolved only is not logged"
    assert client.post("/v1/rules:judge", json={"conflict": "last", "verdict": "right"}).status_code == 200
    changed = client.patch("/v1/memories/rum", json={"formal": "when hour > 20 then drink = 'rum'"})
    assert (changed.status_code, changed.json()["version"]) == (200, 2)
    assert client.post("/v1/rules:apply", json=asked).json()["outcomes"] == {"drink": "물"}
    assert client.patch("/v1/memories/rum", json={"formal": "when hour >"}).status_code == 422


@pytest.mark.seed("000 midnight")
def test_the_server_runs_the_nightly_job_in_every_namespace(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Memory(path, embedder="none", namespace="민아") as memory:
        memory.rules.add_rule("차를 마신다", rule_id="tea", success=5)
    monkeypatch.setattr("rlm.rules.lifecycle.midnight_after", lambda moment, _where: moment + timedelta(seconds=.2))
    with serving(path) as running, running.client() as client:
        client.post("/v1/rules", json={"expr": "Drink tea.", "rule_id": "tea"})
        assert client.post("/v1/rules/tea/used", json={"helped": 5}).json()["status"] in ("hot", "ltm")
        for _ in range(1200):
            if client.get("/v1/rules/tea").json()["status"] == "ltm":
                break
            time.sleep(.1)
        assert client.get("/v1/rules/tea").json()["status"] == "ltm", "no midnight came"
    with Memory(path, embedder="none", namespace="민아") as memory:
        assert memory.rules.get("tea").status == "ltm"
    assert "rlm-nightly" not in [t.name for t in threading.enumerate()]


@pytest.mark.parametrize(("place", "body", "status", "said"), [
    ("/v1/rules", {"formal": "when then"}, 422, "character"), ("/v1/rules", {}, 422, "needs its words"),
    ("/v1/rules/nobody/hold", {}, 404, "no rule"), ("/v1/rules/nobody/used", {"helped": 1}, 404, "no rule"),
    ("/v1/rules:apply", {}, 422, "facts")])
def test_what_can_not_be_is_answered_with_a_sentence(place: str, body: object, status: int, said: str, client: httpx.Client) -> None:
    found = problem(answer := client.post(place, json=body))
    assert found["status"] == status and said in answer.text
