"The server against its own contract: requests made from its OpenAPI page, good ones and spoilt ones."
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from hypothesis.errors import FlakyStrategyDefinition
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from serving import serving

from rlm import Memory

CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]


@pytest.fixture(scope="module")
def contract(bare: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    "The contract of a server that runs, with a few memories."
    with serving(tmp_path_factory.mktemp("fuzz") / "memory.db", serve_rate=0) as running, running.client() as client:
        for n in range(3):
            assert client.post("/v1/write", json={"text": f"memory {n} 기억", "id": str(n)}).status_code == 201
        yield schemathesis.openapi.from_url(f"{running.url}/openapi.json")
        assert client.get("/health").json()["ready"]


ROUTES = ["POST /v1/memories:search", "POST /v1/search", "POST /v1/recall", "POST /v1/write", "GET /v1/memories", "POST /v1/memories",
          "GET /v1/memories/{id}", "PATCH /v1/memories/{id}", "DELETE /v1/memories/{id}", "POST /v1/memories/{id}/restore",
          "GET /v1/memories/{id}/history", "POST /v1/memories/{id}/feedback", "POST /v1/memories/{id}/explain",
          "GET /v1/memories/{id}/links", "POST /v1/memories/{id}/links", "PUT /v1/memories/{id}/links/{target}",
          "DELETE /v1/memories/{id}/links/{target}", "POST /v1/conversations", "GET /v1/conversations/{session}",
          "GET /v1/memories/{id}/neighbours", "GET /v1/timeline", "PATCH /v1/anchors/{slot}", "GET /v1/rules", "POST /v1/rules",
          "GET /v1/rules/{id}", "POST /v1/rules/{id}/used", "POST /v1/rules/{id}/{action}", "POST /v1/rules:apply",
          "GET /v1/rules:conflicts", "POST /v1/rules:judge", "GET /v1/rules:audit", "POST /v1/rules:table", "GET /v1/rules/{id}/history",
          "POST /v1/context", "POST /v1/observe", "POST /v1/policy", "POST /v1/conversations:remember", "POST /v1/review/proposals",
          "DELETE /v1/review/proposals/{id}", "POST /v1/review/rejections",
          "DELETE /v1/review/rejections/{id}", "POST /v1/review/acceptances", "POST /v1/sleep", "POST /v1/sleep/{id}/undo", "GET /v1/audit",
          "DELETE /v1/namespaces/{namespace}", "POST /v1/namespaces/{namespace}/purge"]
LONGEST_ADDRESS = 65_000  # bytes
GOOD, SPOILT = schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE
PLAIN = ["GET /health", "GET /health/live", "GET /metrics", "GET /v1/anchors", "GET /v1/namespaces", "GET /v1/review", "GET /v1/sleep",
         "GET /v1/stats"]
APART = ["POST /v1/memories:bulk", "POST /v1/agent/runs"]  # no JSON value, and a stream: their own tests ask them
CASES = [(r, mode) for r in ROUTES for mode in (GOOD, SPOILT)] + [(r, GOOD) for r in PLAIN]
NAMES = [f"{mode.value} {r}" for r, mode in CASES]


def probe(contract: Any, route: str, mode: Any, examples: int) -> None:
    "Send so many requests made from the contract, and hold each answer to it."
    method, path = route.split(" ")
    operation = contract[path][method]

    @given(case=operation.as_strategy(generation_mode=mode))
    @settings(max_examples=examples, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
    def ask(case: Any) -> None:
        answer = case.call(headers={"Host": "localhost"})
        if len(str(answer.request.url)) > LONGEST_ADDRESS:  # refused by the parser of HTTP, before there is a route
            assert answer.status_code == 400
            return
        case.validate_response(answer, checks=CHECKS)
        assert "Traceback" not in answer.text and "memory.db" not in answer.text
    ask()


@pytest.mark.parametrize(("route", "mode"), CASES, ids=NAMES)
def test_whatever_is_sent_the_answer_is_one_of_the_contract(contract: Any, route: str, mode: Any) -> None:
    probe(contract, route, mode, 12)


@pytest.mark.nightly
@pytest.mark.parametrize(("route", "mode"), CASES, ids=NAMES)
def test_whatever_is_sent_for_long_the_answer_is_one_of_the_contract(contract: Any, route: str, mode: Any) -> None:
    probe(contract, route, mode, 150)


def test_every_route_is_asked(contract: Any) -> None:
    found = {f"{method.upper()} {path}" for path, methods in contract.raw_schema["paths"].items() for method in methods}
    assert found == {*ROUTES, *PLAIN, *APART}


# ---------------------------------------------------------------- sequences: what one request does, the next one meets

IDS = st.sampled_from(["a", "나", "c/d", "e f"])
TEXTS = st.sampled_from(["The dentist is on Main Street.", "치과는 화요일이야", "I am allergic to peanuts.", "I live in Seoul.",
                         "I live in Busan."])
NAMES_OF_STEPS = ("write", "patch", "stale", "delete", "erase", "restore", "link", "unlink", "feedback", "reject", "accept", "propose",
                  "observe", "turns", "context", "recall", "anchor", "rule", "sleep")
STEPS = st.lists(st.tuples(st.sampled_from(NAMES_OF_STEPS), IDS, IDS, TEXTS), min_size=6, max_size=14)


class Sequence:
    "Requests after one another, and what must hold after each."

    def __init__(self, client: httpx.Client) -> None:
        self.client = client
        self.status = 0

    def sent(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        "The answer to a request, which is no error of the server."
        answer = self.client.request(method, path, json=body, headers=headers)
        assert answer.status_code < 500, (method, path, body, answer.text)
        assert "Traceback" not in answer.text
        self.status = answer.status_code
        return answer.json() if answer.content else None

    def step(self, name: str, id: str, other: str, text: str) -> None:
        "One step, and a look at what it did."
        at, to = (f"/v1/memories/{quote(i, safe='')}" for i in (id, other))
        if name == "write":
            told = self.sent("POST", "/v1/memories", {"text": text, "id": id})
            assert self.status == 201 or (self.status == 200 and told["duplicate"]) or self.status in (409, 422)
        elif name in ("patch", "stale"):
            self.sent("PATCH", at, {"text": text}, **({"If-Match": '"999"'} if name == "stale" else {}))
            assert name == "patch" or self.status in (404, 412)
        elif name in ("delete", "erase"):
            self.sent("DELETE", at + ("?erase=true" if name == "erase" else ""))
        elif name in ("link", "unlink"):
            self.sent("POST", f"{at}/links", {"target": other, "relation": "near"}) if name == "link" else self.sent(
                "DELETE", f"{at}/links/{to.rsplit('/', 1)[1]}")
        elif name in ("restore", "feedback"):
            self.sent("POST", f"{at}/{name}", {"helped": 1} if name == "feedback" else None)
        elif name in ("reject", "accept", "propose"):
            where = {"reject": "rejections", "accept": "acceptances", "propose": "proposals"}[name]
            self.sent("POST", f"/v1/review/{where}", {"id": id})
        else:
            body = {"observe": {"text": text}, "turns": {"session": other, "turns": [{"speaker": "Mina", "text": text}]},
                    "context": {"query": text}, "recall": {"query": text}, "sleep": {"dry_run": False},
                    "rule": {"rule_id": other, "expr": text, "formal": "when hour < 11 then drink = 'tea'"}}.get(name)
            path = {"turns": "conversations", "rule": "rules"}.get(name, name)
            self.sent("PATCH", "/v1/anchors/A", {"anchor_block_id": id}) if name == "anchor" else self.sent("POST", f"/v1/{path}", body)
        found = self.sent("GET", at)
        there = self.status == 200
        if name in ("delete", "erase", "reject") and there:
            assert found is not None and name != "erase", f"{id} is there after {name}"
        hits = self.sent("POST", "/v1/memories:search", {"query": text, "k": 50})
        assert self.status == 200 and (there or id not in [h["memory"]["id"] for h in hits["hits"]]), f"{id} is found and not there"


def walk(tmp: Path, examples: int) -> None:
    "Run so many sequences on one store; then everything derived agrees with its rows."
    with serving(tmp / "memory.db", serve_rate=0) as running, running.client() as client:
        @given(steps=STEPS)
        @settings(max_examples=examples, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck),
                  phases=[Phase.generate])  # the store goes on from sequence to sequence: nothing could be made shorter
        def run(steps: list[tuple[str, str, str, str]]) -> None:
            sequence = Sequence(client)
            for step in steps:
                sequence.step(*step)
        run()
    with Memory(tmp / "memory.db", embedder="none") as memory:
        assert memory.check() == []


def test_whatever_is_done_in_sequence_no_request_fails(bare: Path, tmp_path: Path) -> None:
    walk(tmp_path, 8)


@pytest.mark.nightly
def test_whatever_is_done_in_long_sequences_no_request_fails(bare: Path, tmp_path: Path) -> None:
    walk(tmp_path, 60)


@pytest.mark.nightly
def test_sequences_of_requests_keep_the_contract(contract: Any) -> None:
    "Requests that take ids and sessions from answers to earlier ones, as the contract lets them be inferred."
    seen = Counter[tuple[str, int]]()

    class Sequence(contract.as_state_machine()):  # type: ignore[misc]
        def validate_response(self, response: Any, case: Any, **more: Any) -> None:
            seen[case.operation.label, response.status_code // 100] += 1
            case.validate_response(response, checks=CHECKS)
    for number in range(8):
        with suppress(FlakyStrategyDefinition):  # the server remembers earlier sequences: the same draws may meet another answer
            seed(number)(Sequence).run(settings=settings(max_examples=15, stateful_step_count=8, deadline=None, database=None,
                                                         suppress_health_check=list(HealthCheck), phases=[Phase.generate]))
    assert sum(seen.values()) > 100 and any("/{" in route and kind == 2 for route, kind in seen), "no answer was used by a later request"
