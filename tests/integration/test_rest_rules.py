"Rules over HTTP: added, listed, applied, resolved and judged as in Python."
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from serving import problem, serving

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


@pytest.mark.parametrize(("place", "body", "status", "said"), [
    ("/v1/rules", {"formal": "when then"}, 422, "character"), ("/v1/rules", {}, 422, "needs its words"),
    ("/v1/rules/nobody/hold", {}, 404, "no rule"), ("/v1/rules/nobody/used", {"helped": 1}, 404, "no rule"),
    ("/v1/rules:apply", {}, 422, "facts")])
def test_what_can_not_be_is_answered_with_a_sentence(place: str, body: object, status: int, said: str, client: httpx.Client) -> None:
    found = problem(answer := client.post(place, json=body))
    assert found["status"] == status and said in answer.text
