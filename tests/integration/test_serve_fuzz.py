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
    "The page of a server that runs, with a few memories."
    with serving(tmp_path_factory.mktemp("fuzz") / "memory.db", serve_rate=0) as running, running.client() as client:
        for n in range(3):
            assert client.post("/v1/write", json={"text": f"memory {n} 기억", "id": str(n)}).status_code == 201
        yield schemathesis.openapi.from_url(f"{running.url}/openapi.json")
        assert client.get("/health").json()["ready"] and client.get("/v1/memories/0").json()["text"] == "memory 0 기억"


ROUTES = [("POST", "/v1/search"), ("POST", "/v1/recall"), ("POST", "/v1/write"), ("GET", "/v1/memories/{id}"),
          ("GET", "/v1/memories/{id}/neighbours"), ("GET", "/v1/timeline"), ("PATCH", "/v1/anchors/{slot}")]
GOOD, SPOILT = schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE
PLAIN = ["/health", "/health/live", "/metrics", "/v1/anchors"]
CASES = [(m, r, mode) for m, r in ROUTES for mode in (GOOD, SPOILT)] + [("GET", r, GOOD) for r in PLAIN]


@pytest.mark.parametrize(("method", "route", "mode"), CASES, ids=[f"{mode.value} {m} {r}" for m, r, mode in CASES])
def test_whatever_is_sent_the_answer_is_one_of_the_contract(contract: Any, method: str, route: str, mode: Any) -> None:
    operation = contract[route][method]

    @given(case=operation.as_strategy(generation_mode=mode))
    @settings(max_examples=40, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
    def ask(case: Any) -> None:
        answer = case.call(headers={"Host": "localhost"})
        case.validate_response(answer, checks=CHECKS)
        assert "Traceback" not in answer.text and "memory.db" not in answer.text
    ask()
