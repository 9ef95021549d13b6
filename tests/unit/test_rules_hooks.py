"""A rule that is held is told to callbacks and to a webhook."""
import json
import logging
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from rlm import Memory
from rlm.rules import ConflictResolver, RuleStore

pytestmark = pytest.mark.usefixtures("bare")


@pytest.fixture
def received() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    notices: list[dict[str, Any]] = []

    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            notices.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *args: Any) -> None:
            pass
    server = HTTPServer(("127.0.0.1", 0), Receiver)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/held", notices
    server.shutdown()
    thread.join()
    server.server_close()


def finish_webhooks() -> None:
    for thread in threading.enumerate():
        if thread.name == "rlm-rule-webhook":
            thread.join(30)


@pytest.mark.seed("000 hook")
def test_a_held_rule_calls_a_function_and_a_webhook_once(received: tuple[str, list[dict[str, Any]]]) -> None:
    url, notices = received
    with Memory(":memory:", rule_webhook=url) as memory:
        memory.rules.add_rule("밤에는 커피를 권한다", rule_id="coffee")
        told: list[tuple[str, str, str]] = []
        end = memory.rules.on_held(lambda rule, reason: told.append((rule.rule_id, rule.status, reason)))
        for _ in range(6):  # the sixth failure holds nothing again
            memory.record_usage("coffee", failure=1)
        finish_webhooks()
        assert told == [("coffee", "held", "5 failures in total, the last just now")]
        assert [(n["event"], n["rule"]["rule_id"], n["rule"]["status"]) for n in notices] == [("rule-held", "coffee", "held")]
        end()
        memory.rules.release("coffee")
        memory.rules.hold("coffee", "not now")
        finish_webhooks()
        assert len(told) == 1 and notices[-1]["reason"] == "not now"


def test_a_hook_that_fails_is_logged_and_the_rule_is_held_all_the_same(caplog: pytest.LogCaptureFixture) -> None:
    def broken(rule: object, reason: str) -> None:
        raise RuntimeError("no line to the pager")
    told: list[str] = []
    with RuleStore(":memory:", rule_webhook="http://127.0.0.1:9/nobody") as rules, caplog.at_level(logging.WARNING, "rlm.rules"):
        rules.add_rule("tea", rule_id="tea")
        rules.on_held(broken)
        rules.on_held(lambda rule, reason: told.append(rule.rule_id))
        assert rules.hold("tea").status == "held"
        finish_webhooks()
    assert told == ["tea"] and "no line to the pager" in caplog.text and "did not answer" in caplog.text


def test_a_rule_that_is_disproved_too_often_is_told_of() -> None:
    pytest.importorskip("z3")
    with RuleStore(":memory:", k_fail_realtime=1) as rules:
        rules.add_rules([{"rule_id": "tea", "formal": "when x then drink = 'tea'"},
                         {"rule_id": "latte", "formal": "when x then drink = 'latte'"},
                         {"rule_id": "law", "formal": "when drink == 'latte' then milk", "status": "ltm"}])
        told: list[str] = []
        rules.on_held(lambda rule, reason: told.append(rule.rule_id))
        for _ in range(2):
            ConflictResolver(rules).decide({"x": True, "milk": False})
        assert told == ["latte"] and rules.get("latte").status == "held"
