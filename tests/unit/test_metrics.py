"What the server counts: half a minute in the life of a server, and the minute after it."
import re

import pytest

from rlm import Memory
from rlm.recall.anchors import BEAM
from rlm.service.http import telemetry
from rlm.service.http.pages import content_security_policy, read_page
from rlm.service.http.pool import anchor_counters
from rlm.service.http.telemetry import AnchorCounters, Metrics, MetricsExchange

EIGHT = {"anchors_switches_per_min", "local_hit_rate", "fallback_rate", "avg_hops", "beam_width", "anchor_moves_total", "edge_count",
         "edge_growth_rate"}


def figures(metrics: Metrics) -> dict[str, float]:
    lines = [line for line in metrics.page().decode().splitlines() if not line.startswith("#")]
    return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines)}


@pytest.mark.seed("004 metrics")
def test_rates_are_of_the_last_minute_and_counters_stay() -> None:
    seconds, counted = [0.0], [AnchorCounters()]
    metrics = Metrics(lambda: counted[0], prefix="greeum", now=lambda: seconds[0])
    seconds[0] = 30.0
    counted[0] = AnchorCounters(searches=10, local_hits=7, fallbacks=3, hops=14, moves=5, switches=2, edges=400, added=40, beam=32)
    metrics.count_search("anchor A", 0.0004)
    found = figures(metrics)
    assert {n.removeprefix("greeum_") for n in found if n.startswith("greeum_")} == EIGHT
    assert {n: found[f"rlm_{n}"] for n in EIGHT} == {
        "anchors_switches_per_min": 4, "local_hit_rate": .7, "fallback_rate": .3, "avg_hops": 2, "beam_width": 32, "anchor_moves_total": 5,
        "edge_count": 400, "edge_growth_rate": 80}
    assert found['rlm_search_seconds_bucket{layer="anchor A",le="0.0005"}'] == 1
    seconds[0] = 95.0
    quiet = figures(metrics)
    assert (quiet["rlm_edge_growth_rate"], quiet["rlm_edge_count"], quiet["rlm_anchor_moves_total"]) == (0, 400, 5)


@pytest.mark.seed("004 profiles")
def test_the_width_of_a_walk_is_that_of_the_mode() -> None:
    for mode, beam in (("normal", BEAM), ("work", 16), ("research", 64)):
        with Memory(":memory:", embedder="none", anchor_mode=mode) as memory:
            assert anchor_counters(memory).beam == beam


def test_the_explorer_brings_all_it_needs_and_runs_nothing_else() -> None:
    page = read_page()
    found = content_security_policy(page)
    assert found.count("'sha256-") == page.count("<script>") + page.count("<style>") and "unsafe" not in found
    assert not re.search(r"https?://(?!www\.w3\.org/)|innerHTML|insertAdjacentHTML|document\.write|\beval\(|\son\w+=|style=", page)


def test_each_process_of_a_server_tells_the_figures_of_all_and_waits_for_none_that_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(telemetry, "ANSWER_S", 0.2)
    exchange, processes = MetricsExchange(3), [Metrics(lambda: AnchorCounters(edges=7)) for _ in range(2)]
    for number, metrics in enumerate(processes):  # the third has not begun
        metrics.join(number, exchange)
        for _ in range(number + 1):
            metrics.count_search("index", 0.002)
    pages = [figures(metrics) for metrics in processes]
    for found in pages:
        assert [found[f'rlm_search_seconds_count{{layer="index",process="{n}"}}'] for n in (0, 1)] == [1, 2]
        assert found["rlm_edge_count"] == 7, "what is of the store is told once, without a process"
    assert {n for n in pages[0] if "_created" not in n} == {n for n in pages[1] if "_created" not in n}
