"The explorer in a real browser: it finds, explains, draws, and takes every stored text for text."
import json
import re
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from browser import Tab, browsing
from serving import Running, serving

from rlm.rules import ConflictResolver
from rlm.service.http.tokens import TokenFile

NASTY = "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script> a web form"
pytestmark = pytest.mark.usefixtures("bare")


@pytest.fixture(scope="module")
def tab() -> Iterator[Tab]:
    with browsing() as opened:
        yield opened


@pytest.fixture
def running(path: Path) -> Iterator[Running]:
    with serving(path, serve_rate=0) as server:
        memory = server.service.pool.store()
        memory.write("I am allergic to peanuts.", id="peanuts", tags=["health"], valid_from="2026-01-03")
        memory.write("다음 주 화요일에 치과 예약이 있어", id="dentist", tags=["건강"], speaker="민아", valid_from="2026-02-01")
        memory.write("The dentist is on Main Street.", id="street", valid_from="2026-03-01")
        memory.write(NASTY, id="nasty", title=NASTY, tags=["<b>bold</b>"], speaker="<i>me</i>", session="<u>s</u>",
                     valid_from="2026-04-01")
        memory.link("dentist", "street", "similar", 0.8)
        memory.link("dentist", "nasty", "similar", 0.5)
        memory.link("street", "peanuts", "similar", 0.6)
        yield server


def visit(tab: Tab, url: str) -> None:
    tab.call("Page.navigate", url="about:blank")  # the last test's page goes first: it may still ask its server, which is gone
    tab.until("location.href === 'about:blank' && document.readyState === 'complete'")
    tab.events.clear()
    tab.call("Page.navigate", url=url)
    tab.until("document.readyState === 'complete' && document.getElementById('hits')")


def ask(tab: Tab, question: str) -> None:
    tab.until("document.querySelectorAll('.hit').length")
    tab.js(f"document.getElementById('q').value = {question!r}; document.getElementById('ask').requestSubmit()")
    tab.until("document.getElementById('hits-title').textContent === 'Found'")


def test_a_search_shows_hits_with_their_reasons_and_what_is_around_them(tab: Tab, running: Running) -> None:
    visit(tab, running.url)
    ask(tab, "치과 예약은 언제야?")
    tab.until("document.querySelector('.hit').dataset.id === 'dentist'")
    assert "치과 예약이 있어" in tab.js("document.querySelector('.hit p').textContent")
    parts = tab.js("[...document.querySelectorAll('.hit .legend')][0].textContent")
    assert "text" in parts and tab.js("document.querySelectorAll('.hit:first-child .why rect').length") >= 1
    tab.until("document.querySelectorAll('#graph .node').length === 3")
    assert tab.js("document.querySelector('#graph .center').dataset.id") == "dentist"
    assert "2 memories within 1 link" in tab.js("document.getElementById('graph-note').textContent")
    tab.js("document.querySelector('#radius button:nth-child(2)').click()")
    tab.until("document.querySelectorAll('#graph .node').length === 4")
    assert tab.js("document.querySelectorAll('#line .moment').length") == 4
    assert tab.js("document.querySelectorAll('#line .found').length") >= 1
    assert "민아" in tab.js("document.getElementById('detail').textContent")


def test_a_click_on_a_neighbour_or_on_the_time_line_chooses_it(tab: Tab, running: Running) -> None:
    visit(tab, running.url)
    ask(tab, "dentist")
    tab.until("document.querySelector('#graph .center') && document.querySelectorAll('#graph .node').length > 1")
    tab.js("document.querySelector('#line [data-id=peanuts]').dispatchEvent(new MouseEvent('click', {bubbles: true}))")
    tab.until("document.querySelector('#graph .center')?.dataset.id === 'peanuts'")
    assert "allergic" in tab.js("document.querySelector('.detail .body').textContent")
    tab.js("document.querySelector('#graph .near').dispatchEvent(new MouseEvent('click', {bubbles: true}))")
    tab.until("document.querySelector('#graph .center')?.dataset.id === 'street'")


def test_the_time_line_is_looked_at_by_the_hour(tab: Tab, running: Running) -> None:
    memory = running.service.pool.store()
    for hour in (9, 14, 15):
        memory.write(f"Said at {hour}.", id=f"at{hour}", valid_from=f"2026-02-01T{hour:02}:20:00Z")
    visit(tab, running.url)
    ask(tab, "said at 14")
    tab.until("document.querySelectorAll('#line .moment').length === 7")
    tab.js("document.querySelector('#line [data-id=at14]').dispatchEvent(new MouseEvent('click', {bubbles: true}))")
    tab.until("document.querySelector('.detail .mono')?.textContent === 'at14'")
    ticks = "[...document.querySelectorAll('#line text')].map(t => t.textContent).join()"
    assert tab.js(ticks).count(":") == 0
    tab.js("for (let n = 0; n < 7; n += 1) document.querySelector('#line-zoom button:nth-child(3)').click()")
    assert tab.js(ticks).count("02-01 ") >= 1 and ":" in tab.js(ticks), "around the chosen memory, hours"
    assert tab.js("[...document.querySelectorAll('#line .moment')].map(d => d.dataset.id).sort().join()") == "at14,at15,at9"
    assert "3 of 7 memories" in tab.js("document.getElementById('line-note').textContent")
    tab.js("for (let n = 0; n < 20; n += 1) document.querySelector('#line-zoom button:nth-child(4)').click()")
    assert tab.js("document.querySelectorAll('#line .moment').length") == 0
    tab.js("for (let n = 0; n < 9; n += 1) document.querySelector('#line-zoom button:nth-child(2)').click()")
    assert tab.js("document.querySelectorAll('#line .moment').length") == 7
    box = tab.js("JSON.stringify(document.getElementById('line').getBoundingClientRect())")
    wheel = "document.getElementById('line').dispatchEvent(new WheelEvent('wheel', {deltaY: -1, clientX: %s, cancelable: true}))"
    tab.js(wheel % (json.loads(box)["left"] + 20))
    assert "of 7 memories" in tab.js("document.getElementById('line-note').textContent")


def test_what_is_found_stands_on_the_time_line_behind_600_newer_memories(tab: Tab, running: Running) -> None:
    running.service.pool.store().write_many([{"text": f"Line {n}.", "valid_from": f"2026-05-{1 + n % 28:02}"} for n in range(620)])
    visit(tab, running.url)
    tab.until("document.querySelectorAll('#line .moment').length === 600")
    assert tab.js("document.querySelectorAll('#line [data-id=peanuts]').length") == 0
    ask(tab, "peanuts")
    tab.until("document.querySelector('#line [data-id=peanuts].found')")
    assert tab.js("document.getElementById('line-note').textContent") == "600 memories, the latest · 1 of those found"


def test_an_anchor_is_put_pinned_and_searched_from(tab: Tab, running: Running) -> None:
    visit(tab, running.url)
    ask(tab, "dentist")
    tab.until("document.querySelectorAll('.place button').length === 3")
    tab.until("document.querySelector('.detail .mono').textContent === document.querySelector('.hit.chosen')?.dataset.id")
    chosen = tab.js("document.querySelector('.hit.chosen').dataset.id")
    tab.js("document.querySelector('.place button:nth-of-type(2)').click()")
    tab.until("document.querySelectorAll('.anchor.held').length === 1")
    tab.js("document.querySelector('.anchor.held .pin').click()")
    tab.until("document.querySelector('.anchor.held .pin').getAttribute('aria-pressed') === 'true'")
    held = running.service.pool.store().anchors.state()[1]
    assert (held.id, held.pinned) == (chosen, True)
    tab.js("document.getElementById('slot').value = 'B'; document.getElementById('ask').requestSubmit()")
    tab.until("document.querySelector('.hit .layer')?.textContent.startsWith('anchor B')")


def test_what_is_in_mind_is_asked_first_and_says_which_layer_knew_it(tab: Tab, running: Running) -> None:
    visit(tab, running.url)
    tab.js("document.getElementById('slot').value = 'mind'")
    ask(tab, "dentist")
    tab.until("document.getElementById('status').textContent.includes('from the index')")
    tab.js("document.getElementById('ask').requestSubmit()")
    tab.until("document.querySelector('.hit .layer')?.textContent === 'cache'")
    assert re.search(r"from the cache in [\d.]+ ms", tab.js("document.getElementById('status').textContent"))
    assert tab.js("document.querySelectorAll('.hit:first-child .why rect').length") >= 1


def test_what_looks_like_html_is_shown_as_it_is_written(tab: Tab, running: Running) -> None:
    visit(tab, running.url)
    ask(tab, "web form")
    tab.until("document.querySelector('.hit').dataset.id === 'nasty'")
    tab.until("document.querySelector('#graph .center')?.dataset.id === 'nasty'")
    assert tab.js("document.querySelector('.hit p').textContent") == NASTY and "<b>bold</b>" in tab.js("document.body.textContent")
    assert tab.js("document.querySelectorAll('main img, main script, main b, main i:not([style]), main u').length") == 0
    assert tab.js("document.title") == "rlm explorer" and tab.said() == []
    refused = tab.js("(() => { try { document.body.innerHTML = '<p>x</p>'; return 'taken' } catch (e) { return e.name } })()")
    assert refused == "TypeError", "the policy does not keep HTML from being made of texts"


def test_it_asks_no_other_server_and_breaks_no_rule_of_its_policy(tab: Tab, running: Running) -> None:
    visit(tab, running.url)
    ask(tab, "dentist")
    tab.until("document.querySelector('#graph .center')?.dataset.id")
    assert tab.asked() and all(url.startswith((running.url, "data:")) for url in tab.asked()), tab.asked()
    assert tab.said() == []


def test_a_token_is_asked_for_and_kept_in_the_page_alone(tab: Tab, path: Path, tmp_path: Path) -> None:
    book = TokenFile(tmp_path / "tokens")
    token, _ = book.add("default")
    with serving(path, book) as running:
        running.service.pool.store().write("A memory behind the door.", id="door")
        visit(tab, running.url)
        tab.until("!document.getElementById('token-box').classList.contains('hidden')")
        assert tab.js("document.querySelectorAll('.hit').length") == 0
        assert tab.js("document.getElementById('status').textContent") == "Sign in: the token is missing, unknown, or has expired."
        tab.js(f"document.getElementById('token').value = {token!r}; document.getElementById('token-use').click()")
        tab.until("document.querySelector('.hit')?.dataset.id === 'door'")
        stored = tab.js("JSON.stringify([Object.entries(localStorage), Object.entries(sessionStorage), document.cookie, location.href])")
        assert token not in stored and tab.js("document.getElementById('token').value") == ""
        visit(tab, running.url)
        tab.until("!document.getElementById('token-box').classList.contains('hidden')")


def test_light_dark_and_small(tab: Tab, running: Running, tmp_path: Path) -> None:
    visit(tab, running.url)
    ask(tab, "dentist")
    sizes = []
    for n in range(2):
        tab.picture(tmp_path / f"{n}.png")
        sizes.append(tab.js("getComputedStyle(document.body).backgroundColor"))
        tab.js("document.getElementById('theme').click()")
    assert sizes[0] != sizes[1] and all((tmp_path / f"{n}.png").stat().st_size > 20_000 for n in range(2))
    tab.call("Emulation.setDeviceMetricsOverride", width=390, height=800, deviceScaleFactor=1, mobile=True)
    assert tab.js("document.documentElement.scrollWidth") <= 390, "it must be scrolled sideways"
    tab.call("Emulation.clearDeviceMetricsOverride")


def test_a_person_writes_edits_looks_back_deletes_and_rejects(tab: Tab, running: Running) -> None:
    memory = running.service.pool.store()
    visit(tab, running.url)
    tab.until("document.querySelectorAll('.hit').length === 4 && document.getElementById('edit-it')")
    tab.js("document.dispatchEvent(new KeyboardEvent('keydown', {key: 'n'}))")
    tab.js("document.getElementById('new-text').value = '보트는 빨간색이다'; "
           "document.getElementById('new-tags').value = 'boat, 배'; document.getElementById('write').requestSubmit()")
    tab.until("document.querySelector('.detail .body')?.textContent === '보트는 빨간색이다' && location.hash")
    made = tab.js("location.hash.slice(1)")
    assert memory.get(made).tags == ("boat", "배")
    assert tab.js("document.getElementById('edit-it').click(); document.getElementById('edit-text').value = ''; "
                  "document.querySelector('.edit').checkValidity()") is False, "an empty text is not sent"
    tab.js("document.getElementById('edit-it').click(); document.getElementById('edit-text').value = '보트는 파란색이다'; "
           "document.getElementById('save-it').click()")
    tab.until("document.querySelector('.detail .body')?.textContent === '보트는 파란색이다'")
    tab.js("document.getElementById('history-it').click()")
    tab.until("document.querySelectorAll('.past li').length >= 4")
    assert "빨간색" in tab.js("document.querySelector('.past').textContent") and memory.get(made).version == 2
    tab.js("window.prompt = () => 'it is green'; document.getElementById('reject-it').click()")
    tab.until("document.getElementById('status').textContent.startsWith('Rejected')")
    assert [r.reason for r in memory.companion.rejections()] == ["it is green"]
    tab.until("document.querySelector('.detail .body').textContent !== '보트는 파란색이다'")  # it is gone here, too
    tab.js("window.confirm = () => true; location.hash = 'street'")
    tab.until("document.querySelector('.detail .mono').textContent === 'street'")
    tab.js("document.getElementById('delete-it').click()")
    tab.until("document.getElementById('status').textContent === 'Deleted.'")
    assert {m.id for m in memory.list()} == {"peanuts", "dentist", "nasty"} and tab.said() == []


def test_a_phone_shows_the_memory_that_is_touched_and_what_became_of_it(tab: Tab, running: Running) -> None:
    running.service.pool.store().write_many([f"Note {n} about the boiler." for n in range(10)])
    tab.call("Emulation.setDeviceMetricsOverride", width=390, height=800, deviceScaleFactor=1, mobile=True)
    visit(tab, running.url)
    tab.until("document.querySelectorAll('.hit').length > 9 && document.getElementById('edit-it')")
    tab.js("window.seen = id => { const top = document.getElementById(id).getBoundingClientRect().top; return 0 < top && top < 800; }")
    assert not tab.js("seen('edit-it')"), "the control: it lies below the hits"
    tab.js("document.querySelectorAll('.hit')[1].click()")
    tab.until("seen('edit-it')")
    tab.js("window.confirm = () => true; document.getElementById('delete-it').click()")
    tab.until("document.getElementById('status').textContent === 'Deleted.' && seen('status')")
    tab.call("Emulation.clearDeviceMetricsOverride")


def test_what_a_write_ends_is_said_shown_and_taken_back(tab: Tab, running: Running) -> None:
    memory = running.service.pool.store()
    memory.write("나는 서울에 살아.", id="seoul")
    visit(tab, running.url)
    tab.until("document.querySelectorAll('.hit').length === 5")
    tab.js("document.getElementById('new-text').value = '나 부산으로 이사했어.'; document.getElementById('write').requestSubmit()")
    tab.until("document.getElementById('status').textContent.endsWith('It ended: seoul')")
    tab.js("document.querySelector('#more button').click()")
    tab.until("document.getElementById('ended')?.textContent.startsWith('holds until')")
    tab.js("document.getElementById('history-it').click()")
    tab.until("document.querySelector('.past')?.textContent.includes('superseded')")
    tab.js("document.getElementById('current-it').click()")
    tab.until("document.querySelectorAll('.hit').length === 6 && !document.getElementById('ended')")
    assert memory.get("seoul").valid_to is None and tab.said() == []


def test_what_waits_is_decided_and_filters_and_korean_hold(tab: Tab, running: Running) -> None:
    memory = running.service.pool.store()
    httpx.post(f"{running.url}/v1/review/proposals", json={"id": "street", "reason": "it moved"}).raise_for_status()
    visit(tab, running.url)
    tab.until("document.querySelectorAll('.wait').length === 1")
    assert "it moved" in tab.js("document.querySelector('.wait').textContent")
    tab.js("document.querySelectorAll('.wait button')[1].click()")
    tab.until("document.getElementById('review-part').classList.contains('hidden')")
    assert memory.get("street").text == "The dentist is on Main Street."
    tab.js("document.getElementById('filter-button').click(); document.getElementById('f-speaker').value = '민아'; "
           "document.getElementById('filters').requestSubmit()")
    tab.until("document.querySelectorAll('.hit').length === 1 && document.querySelector('.hit').dataset.id === 'dentist'")
    ask(tab, "dentist")
    tab.until("!document.querySelector('.hit[data-id=street]')")
    tab.js("document.getElementById('language').click()")
    assert tab.js("document.documentElement.lang") == "ko" and tab.js("document.querySelector('.go').textContent") == "검색"
    tab.until("document.getElementById('edit-it')?.textContent === '수정'")
    assert tab.said() == []


def test_rules_are_shown_with_how_they_did_and_decided(tab: Tab, running: Running) -> None:
    rules = running.service.pool.store().rules
    rules.add_rule({"rule_id": "tea", "expr": "아침에는 차를 마신다", "formal": "when hour < 11 then drink = 'tea'"})
    rules.add_rule({"rule_id": "cola", "expr": "Drink cola", "formal": "when hour < 10 then drink = 'cola'"})
    rules.update_usage("tea", 4, 1)
    ConflictResolver(rules).decide({"hour": 9})
    visit(tab, running.url)
    tab.js("document.getElementById('rules').open = true")
    tab.until("document.querySelectorAll('#rule-list .card').length === 2")
    tea = tab.js("document.querySelector('#rule-list .card').textContent")
    assert "helped 4 · misled 1" in tea and "conflicts 1" in tea
    tab.js("document.querySelector('#rule-list .small').click()")  # promote
    tab.until("document.querySelector('#rule-list .card .tag').textContent === 'ltm'")
    assert rules.get("tea").status == "ltm" and tab.said() == []
