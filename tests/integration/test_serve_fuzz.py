"The server against its own contract: requests made from its OpenAPI page, good ones and spoilt ones."
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from serving import serving

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
          "GET /v1/rules:conflicts",
          "POST /v1/context", "POST /v1/observe", "POST /v1/conversations:remember", "POST /v1/review/proposals",
          "DELETE /v1/review/proposals/{id}", "POST /v1/review/rejections",
          "DELETE /v1/review/rejections/{id}", "POST /v1/review/acceptances", "POST /v1/sleep", "POST /v1/sleep/{id}/undo", "GET /v1/audit"]
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
