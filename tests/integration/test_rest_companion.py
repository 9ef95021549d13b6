"Blocks for a prompt, corrections, rules and scopes over REST: an ordinary day, rights, and two tenants who do not learn of one another."
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from serving import Running, serving

from rlm import Memory
from rlm.service.http.tokens import TokenFile

pytestmark = pytest.mark.usefixtures("bare")


@pytest.fixture
def client(path: Path) -> Iterator[httpx.Client]:
    with serving(path, serve_rate=0) as running, running.client() as made:
        yield made


@pytest.fixture
def tenants(path: Path, tmp_path: Path) -> Iterator[tuple[Running, dict[str, dict[str, str]]]]:
    "A server, and the headers of a reader, a writer and an admin of one namespace, and of an admin of another."
    tokens = TokenFile(tmp_path / "tokens")
    headers = {name: {"Authorization": f"Bearer {tokens.add(namespace, [right])[0]}"} for name, namespace, right in (
        ("reader", "mina", "read"), ("writer", "mina", "write"), ("admin", "mina", "admin"), ("other", "jun", "admin"))}
    with serving(path, tokens, serve_rate=0) as running:
        yield running, headers


def test_a_block_for_a_prompt_holds_what_answers_and_its_budget(client: httpx.Client) -> None:
    for text in ("I am allergic to peanuts.", "나는 매운 음식을 못 먹어", "The boiler is serviced in November."):
        client.post("/v1/memories", json={"text": text})
    block = client.post("/v1/context", json={"query": "what may I eat? peanuts?", "tokens": 200}).json()
    assert "peanuts" in block["context"] and block["tokens"] <= 200 and block["memories"] and "boiler" not in block["context"]
    assert client.post("/v1/context", json={"query": "zebra quantum"}).json()["memories"] == []
    for wrong in ({"tokens": 5}, {"query": ""}, {"query": "x", "tokens": 0}, {"query": "x", "token": 5}):
        assert client.post("/v1/context", json=wrong).status_code == 422


def test_the_policy_is_taught_by_those_who_may_write_and_in_their_namespace_alone(
        tenants: tuple[Running, dict[str, dict[str, str]]]) -> None:
    running, headers = tenants
    turn = {"text": "The train was late again."}
    with running.client() as client:
        def say(who: str, **more: object) -> httpx.Response:
            return client.post("/v1/policy", json=turn | more, headers=headers[who])
        first, beside = say("reader").json()["now"], say("other").json()
        right = "skip" if first["save"] else "save"
        assert say("reader", feedback=right).status_code == 403 and say("reader").json()["now"] == first
        assert [say("writer", feedback=wrong).status_code for wrong in (1.5, "", True, [1])] == [422] * 4
        assert say("writer", feedback="The sky is blue and high today.").json()["reward"] == 0, "words that say nothing teach nothing"
        taught = [say("writer", feedback=right).json() for _ in range(40)]
        assert taught[0]["judged"]["save"] == first["save"] and taught[0]["reward"] == -1
        assert say("reader").json()["now"]["save"] == (right == "save") and say("other").json() == beside
        assert say("writer", feedback=-0.5).json()["reward"] == -0.5


def test_what_is_rejected_is_gone_and_refused_until_it_is_lifted(client: httpx.Client) -> None:
    made = client.post("/v1/memories", json={"text": "I live in Seoul."}).json()
    near = client.post("/v1/memories", json={"text": "My sister lives in Seoul."}).json()
    proposed = client.post("/v1/review/proposals", json={"id": made["id"], "reason": "I never lived there."})
    assert proposed.status_code == 201 and [p["id"] for p in client.get("/v1/review").json()["proposals"]] == [made["id"]]
    assert client.get(f"/v1/memories/{made['id']}").status_code == 200, "until a person decides it stands"
    rejected = client.post("/v1/review/rejections", json={"id": made["id"], "reason": "I never lived there."})
    assert rejected.status_code == 201 and rejected.json()["memory"] == made["id"]
    review = client.get("/v1/review").json()
    assert review["proposals"] == [] and [r["id"] for r in review["rejections"]] == [rejected.json()["id"]]
    assert client.get(f"/v1/memories/{made['id']}").status_code == 404
    assert client.post("/v1/memories", json={"text": "I live in seoul"}).status_code in (409, 422)
    assert client.get(f"/v1/memories/{near['id']}").status_code == 200, "a neighbour value is untouched"
    assert client.post("/v1/memories", json={"text": "I live in Busan."}).status_code == 201
    assert client.delete(f"/v1/review/rejections/{rejected.json()['id']}").status_code == 200
    assert client.post("/v1/memories", json={"text": "I live in Seoul."}).status_code == 201


def test_a_proposal_may_be_dismissed_and_a_fact_rejected_by_its_value(client: httpx.Client) -> None:
    made = client.post("/v1/memories", json={"text": "나는 부산에 살아"}).json()
    client.post("/v1/review/proposals", json={"id": made["id"]})
    assert client.delete(f"/v1/review/proposals/{made['id']}").json()["id"] == made["id"]
    assert client.get("/v1/review").json() == {"proposals": [], "waiting": [], "rejections": []}
    assert client.delete(f"/v1/review/proposals/{made['id']}").status_code == 404
    assert client.post("/v1/review/rejections", json={"relation": "residence", "value": "부산"}).status_code == 201
    assert client.get(f"/v1/memories/{made['id']}").status_code == 404
    for wrong in ({}, {"id": "a", "text": "b"}, {"value": "x"}, {"relation": "x"}, {"id": 5}):
        assert client.post("/v1/review/rejections", json=wrong).status_code == 422
    assert client.post("/v1/review/rejections", json={"id": "nobody"}).status_code == 404


def test_rules_are_applied_and_their_conflicts_decided(client: httpx.Client, path: Path) -> None:
    with Memory(path, embedder="none") as memory:
        memory.rules.add_rule("아침에는 녹차", formal="when hour < 11 then drink = '녹차'", rule_id="tea", success=3, tags=["drinks"])
        memory.rules.add_rule("coffee for meetings", formal="when meeting then drink = 'coffee'", rule_id="coffee")
    facts = {"hour": 9, "meeting": True, "unknown": None}
    applied = client.post("/v1/rules:apply", json={"facts": facts}).json()
    assert [f["rule_id"] for f in applied["fired"]] == ["coffee", "tea"] and "agreed" not in applied
    decided = client.post("/v1/rules:apply", json={"facts": facts, "resolve": True}).json()
    assert decided["outcomes"] == {"drink": "녹차"} and decided["rulings"][0]["stage"] == "vote" and not decided["agreed"]
    assert [f["rule_id"] for f in client.post("/v1/rules:apply", json={"facts": facts, "tags": ["drinks"]}).json()["fired"]] == ["tea"]
    for wrong in ({}, {"facts": []}, {"facts": {"a b": 1}}, {"facts": {"x": [1]}}):
        assert client.post("/v1/rules:apply", json=wrong).status_code == 422


def test_rights_and_tenants_are_kept_apart(tenants: tuple[Running, dict[str, dict[str, str]]]) -> None:
    running, headers = tenants
    with running.client() as client:
        for who, wish, status in (("reader", "resolve", 200), ("reader", "record", 403), ("writer", "record", 200)):
            body = {"facts": {"hour": 9}, wish: True}
            assert client.post("/v1/rules:apply", json=body, headers=headers[who]).status_code == status, (who, wish)
        made = client.post("/v1/memories", json={"text": "I live in Seoul."}, headers=headers["writer"]).json()
        for who, status in (("reader", 403), ("writer", 403), ("other", 404), ("admin", 201)):
            assert client.post("/v1/review/rejections", json={"id": made["id"]}, headers=headers[who]).status_code == status, who
        assert client.post("/v1/review/proposals", json={"id": "x"}, headers=headers["reader"]).status_code == 403
        assert client.get("/v1/review", headers=headers["other"]).json()["rejections"] == []
        assert client.post("/v1/memories", json={"text": "I live in Seoul."}, headers=headers["other"]).status_code == 201
        assert client.get("/v1/namespaces", headers=headers["reader"]).json() == {"namespaces": ["mina"]}
        mine, theirs = (client.get("/v1/stats", headers=headers[who]).json() for who in ("reader", "other"))
        assert (mine["memories"], theirs["memories"]) == (0, 1) and not {"path", "bytes"} & (mine.keys() | theirs.keys())
        assert client.post("/v1/context", json={"query": "where do I live? Seoul"}, headers=headers["reader"]).json()["memories"] == []
        assert client.get("/v1/stats").status_code == 401


def test_an_admin_erases_a_whole_namespace_of_the_token_and_no_other(tenants: tuple[Running, dict[str, dict[str, str]]],
                                                                     path: Path) -> None:
    running, headers = tenants
    with running.client() as client:
        kept, gone = [client.post("/v1/memories", json={"text": text}, headers=headers["writer"]).json()["id"]
                      for text in ("Xylophon lessons on Monday.", "Quarzuhr repairs on Friday.")]
        client.post("/v1/memories", json={"text": "Jun likes tea.", "id": kept}, headers=headers["other"])
        client.post("/v1/recall", json={"query": "lessons on Monday"}, headers=headers["writer"])
        client.delete(f"/v1/memories/{gone}", headers=headers["writer"])
        for who, status in (("reader", 403), ("writer", 403), ("other", 403)):
            assert client.delete("/v1/namespaces/mina", headers=headers[who]).status_code == status, who
            assert client.post("/v1/namespaces/mina/purge", json={"days": 0}, headers=headers[who]).status_code == status, who
        planned = client.post("/v1/namespaces/mina/purge", json={"days": 0, "dry_run": True}, headers=headers["admin"]).json()
        purged = client.post("/v1/namespaces/mina/purge", json={"days": 0}, headers=headers["admin"]).json()
        assert planned["ids"] == purged["ids"] == [gone] and purged["erased"] == 1
        assert client.post("/v1/namespaces/mina/purge", json={"days": 30}, headers=headers["admin"]).json()["erased"] == 0
        erased = client.delete("/v1/namespaces/mina", headers=headers["admin"])
        assert erased.status_code == 200 and (erased.json()["erased"], erased.json()["ids"]) == (1, [kept])
        assert erased.json()["namespace"] == "mina" and len(erased.json()["actor"]) == 8
        assert client.delete("/v1/namespaces/mina", headers=headers["admin"]).status_code == 404, "there is nothing left"
        assert client.post("/v1/memories:search", json={"query": "lessons"}, headers=headers["reader"]).json()["hits"] == []
        assert client.get(f"/v1/memories/{kept}", headers=headers["other"]).json()["text"] == "Jun likes tea."
        client.post("/v1/memories", json={"text": "The namespace begins anew."}, headers=headers["writer"])
        assert client.get("/v1/stats", headers=headers["reader"]).json()["memories"] == 1
    with Memory(path, namespace="mina", embedder="none") as memory:
        assert memory.check() == []
    held = b"".join(p.read_bytes() for p in path.parent.rglob("*") if p.is_file())
    assert b"Jun likes tea" in held and b"Xylophon" not in held and b"Quarzuhr" not in held


def test_a_night_is_planned_slept_listed_and_taken_back_by_an_administrator(tmp_path: Path) -> None:
    with serving(tmp_path / "memory.db") as running, running.client() as client:
        for text in ("I like hiking.", "i like hiking"):
            assert client.post("/v1/write", json={"text": text, "extra": {"n": text}}).status_code == 201
        planned = client.post("/v1/sleep", json={"dry_run": True, "forget": False}).json()
        assert planned["dry_run"] and planned["looked_at"] >= 1 and client.get("/v1/sleep").json() == {"nights": []}
        slept = client.post("/v1/sleep", json={}).json()
        [night] = client.get("/v1/sleep").json()["nights"]
        assert night["night"] == slept["night"] and night["ended"]
        woken = client.post("/v1/sleep/" + slept["night"] + "/undo").json()
        assert woken["restored"] == [c["id"] for c in slept["changes"]]
        assert client.post("/v1/sleep/never/undo").status_code == 404
