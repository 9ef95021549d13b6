"The token file: who may call the server, for which namespace, and what for."
import logging
import os
import stat
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from rlm.core.clock import ManualClock, parse_time
from rlm.core.errors import InvalidInput, NotFound, RlmError, SettingsError
from rlm.core.files import file_lock
from rlm.service.http.tokens import Token, TokenFile, TokenUses, hash_secret, read_expiry, read_lifetime

NOW = parse_time("2026-11-25T09:00:00Z")


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(NOW)


@pytest.fixture
def book(tmp_path: Path, clock: ManualClock) -> TokenFile:
    return TokenFile(tmp_path / "tokens", clock)


def test_a_token_is_known_by_its_hash_alone(book: TokenFile) -> None:
    mine, kept = book.add("팀")
    watch, _ = book.add("default", ["metrics"])
    assert book.holder(mine) == kept and kept.may("read") and kept.may("write") and not kept.may("metrics")
    assert book.holder("") is None and book.holder(mine[:-1]) is None and book.holder("\ud800") is None
    assert mine not in book.path.read_text() and stat.S_IMODE(book.path.stat().st_mode) == 0o600
    assert len(mine) == 47 and len({book.add("팀")[0] for _ in range(20)}) == 20
    other = TokenFile(book.path)
    held = book.holder(watch)
    assert other.revoke(kept.id) == kept and book.holder(mine) is None and held is not None and held.rights == ("metrics",)


@pytest.mark.parametrize("end", ["\n", ""], ids=["an end", "no end"])
def test_notes_of_people_in_the_file_stay(book: TokenFile, end: str) -> None:
    _, first = book.add("default")
    note = f"# the watcher\n{first.line()}".rstrip()
    book.path.write_text(note + end)
    secret, new = book.add("팀")
    assert book.holder(secret) == new and book.path.read_text() == f"{note}\n{new.line()}"
    assert book.revoke(new.id) == new and book.path.read_text() == f"{note}\n"


@pytest.mark.parametrize("wrong", [lambda b: b.add(""), lambda b: b.add("a\tb"), lambda b: b.add("a", ["all"]), lambda b: b.add("a", [])])
def test_a_token_for_nothing_is_not_made(book: TokenFile, wrong: Callable[[TokenFile], object]) -> None:
    with pytest.raises(InvalidInput):
        wrong(book)
    assert not book.path.exists()


@pytest.mark.parametrize("line", ["beef\tdefault\tread", f"{'0' * 64}\tdefault\tall", f"{'0' * 64}\tdefault", "nonsense",
                                  *(f"{'0' * 64}\tdefault\tread\t{more}" for more in (
                                      "x", "[]", '{"expires": "soon"}', '{"expires": null}', '{"expires": "2026-01-01T00:00:00"}',
                                      '{"odd": 1}', '{"namespaces": [""]}', '{"namespaces": 3}', "{}\t{}"))])
def test_a_line_that_is_no_token_shuts_out_everybody(book: TokenFile, line: str) -> None:
    secret, _ = book.add("default")
    with book.path.open("a", encoding="utf-8") as file:
        file.write(f"{line}\n")
    with pytest.raises(SettingsError, match="Line 2"):
        book.holder(secret)


def test_what_is_not_there_can_not_be_revoked(book: TokenFile) -> None:
    book.add("default")
    with pytest.raises(NotFound):
        book.revoke("00000000")


def test_a_folder_is_no_token_file(tmp_path: Path) -> None:
    with pytest.raises(RlmError, match="can't be read"):
        TokenFile(tmp_path).tokens()


def test_a_token_has_a_label_dates_an_end_and_several_namespaces(book: TokenFile, clock: ManualClock) -> None:
    secret, made = book.add(["팀", "shared", "팀"], ["read"], label="laptop", expires=NOW + timedelta(days=90))
    held = TokenFile(book.path, clock).holder(secret)
    assert held == made and held is not None and held.label == "laptop" and held.created == NOW
    assert held.namespaces == ("팀", "shared") and held.within("shared").namespaces == ("shared", "팀") and held.within("팀") == held
    clock.advance(days=90, microseconds=-1)
    assert book.holder(secret) == made
    clock.advance(microseconds=1)
    assert book.holder(secret) is None and book.tokens() == (made,), "an expired token is still listed"


def test_a_line_of_an_earlier_version_is_read(book: TokenFile) -> None:
    secret, made = book.add("default", ["read", "metrics"])
    book.path.write_text(f"{made.digest}\tdefault\tread,metrics\n")
    held = book.holder(secret)
    assert held is not None and (held.rights, held.created, held.expires, held.label) == (("read", "metrics"), None, None, "")
    assert held.line() == book.path.read_text()


def test_admin_may_do_everything_and_write_may_not(book: TokenFile) -> None:
    admin, writer = (book.add("default", [right])[1] for right in ("admin", "write"))
    assert all(admin.may(right) for right in ("read", "write", "metrics", "admin"))
    assert not writer.may("admin") and not writer.may("metrics")


def test_a_rotated_token_opens_the_same_and_the_old_one_ends(book: TokenFile, clock: ManualClock) -> None:
    old, was = book.add(["a", "b"], ["read", "metrics"], label="ci", expires=NOW + timedelta(days=9))
    clock.advance(hours=1)
    new, made = book.rotate(was.id, timedelta(hours=2))
    assert (made.namespaces, made.rights, made.label, made.expires) == (was.namespaces, was.rights, was.label, was.expires)
    assert made.id != was.id and made.created == clock.now() and book.holder(old) is not None and book.holder(new) == made
    clock.advance(hours=2)
    assert book.holder(old) is None and book.holder(new) == made
    newest, last = book.rotate(made.id)
    assert book.holder(new) is None and book.holder(newest) == last
    with pytest.raises(NotFound):
        book.rotate(made.id)
    clock.advance(days=9)
    with pytest.raises(InvalidInput, match="expired"):
        book.rotate(last.id)


def test_a_token_that_is_made_while_another_is_revoked_is_not_lost(book: TokenFile) -> None:
    gone = [book.add("default")[1].id for _ in range(20)]

    def revoke(id: str) -> str:
        return TokenFile(book.path).revoke(id).id

    def add(n: int) -> str:
        return TokenFile(book.path).add(f"team {n}")[1].id
    with ThreadPoolExecutor(8) as threads:
        revoked = [threads.submit(revoke, id) for id in gone]
        made = [threads.submit(add, n) for n in range(20)]
        assert [r.result() for r in revoked] == gone
        kept = {m.result() for m in made}
    assert {t.id for t in book.tokens()} == kept


@pytest.mark.skipif(os.name != "posix", reason="this system has no such modes")
@pytest.mark.parametrize("mode", [0o644, 0o640, 0o602, 0o620])
def test_a_file_that_others_may_read_or_change_is_refused(book: TokenFile, mode: int) -> None:
    secret, made = book.add("default")
    book.path.chmod(mode)
    for use in (lambda: book.holder(secret), lambda: book.add("default"), lambda: book.revoke(made.id), book.required):
        with pytest.raises(SettingsError, match="by others") as refused:
            use()
    assert f"mode {mode:04o}" in refused.value.message and "chmod 600" in refused.value.hint
    book.path.chmod(0o600)
    assert book.holder(secret) == made


def test_a_lifetime_is_told_in_weeks_too() -> None:
    assert read_lifetime("2w") == timedelta(days=14)


def test_an_expiry_that_can_not_be_read_names_spans_and_dates() -> None:
    for text in ("내일", "soon", "90x", "xd"):
        with pytest.raises(InvalidInput) as refused:
            read_expiry(text, NOW)
        assert "90d" in refused.value.hint


def test_tokens_are_needed_once_there_is_a_file(book: TokenFile) -> None:
    assert not book.required()
    TokenFile(book.path).add("default")
    assert book.required()
    book.path.unlink()
    assert book.required(), "a file that is deleted must not let everybody in"


def note(uses: TokenUses, token: Token) -> None:
    "Note a use, and wait for the thread that writes it, if there is one."
    uses.note(token)
    for thread in threading.enumerate():
        if thread.name == "rlm-token-uses":
            thread.join(60)


def test_last_uses_are_kept_once_a_minute_and_servers_may_share_them(book: TokenFile, clock: ManualClock) -> None:
    one, two = (book.add("default")[1] for _ in range(2))
    here, there = (TokenUses(book.path, clock) for _ in range(2))
    note(here, one)
    assert here.read() == {one.id: NOW} and stat.S_IMODE(here.path.stat().st_mode) == 0o600
    clock.advance(seconds=30)
    note(there, two)
    note(here, one)
    assert here.read() == {one.id: NOW, two.id: NOW + timedelta(seconds=30)}
    clock.advance(seconds=30)
    note(here, two)
    here.save()
    assert here.read() == {one.id: NOW + timedelta(seconds=30), two.id: NOW + timedelta(seconds=60)}


def test_a_use_that_can_not_be_stored_is_said_in_the_log(book: TokenFile, clock: ManualClock, caplog: pytest.LogCaptureFixture) -> None:
    _, made = book.add("default")
    uses = TokenUses(book.path, clock)
    uses.path.mkdir()
    with caplog.at_level(logging.WARNING, "rlm.serve"):
        note(uses, made)
    assert "last used" in caplog.text


def test_a_lock_on_the_file_of_last_uses_keeps_no_request_waiting(book: TokenFile, clock: ManualClock,
                                                                  caplog: pytest.LogCaptureFixture) -> None:
    _, made = book.add("default")
    uses = TokenUses(book.path, clock)
    with file_lock(uses.path):
        uses.note(made)  # in a thread of its own it waits for the lock
        uses.save(patience_s=0)
        assert "locked by another process" in caplog.text and not uses.read()
    uses.save()
    assert uses.read() == {made.id: NOW}


def test_a_token_of_many_is_found_without_a_look_at_the_others(book: TokenFile, monkeypatch: pytest.MonkeyPatch) -> None:
    mine, kept = book.add("mina")
    others = [replace(kept, digest=hash_secret(f"rlm_{n}"), namespace=f"tenant-{n}") for n in range(1000)]
    book.path.write_text("".join(t.line() for t in [*others, kept]))
    assert len(book.tokens()) == 1001 and book.holder(mine) == kept and book.holder("rlm_999") == others[-1]
    monkeypatch.setattr(Token, "__eq__", lambda *_: pytest.fail("tokens are compared"))
    assert book.holder(mine) is not None and book.holder("rlm_1000") is None


@pytest.mark.parametrize(("text", "ends"), [("90d", NOW + timedelta(days=90)), (" 12h ", NOW + timedelta(hours=12)),
                                            ("30m", NOW + timedelta(minutes=30)), ("2027-01-01", parse_time("2027-01-01"))])
def test_an_end_is_a_date_or_a_span(text: str, ends: datetime) -> None:
    assert read_expiry(text, NOW) == ends


@pytest.mark.parametrize("text", ["", "d", "0d", "-1d", "1.5d", "9" * 30 + "d", "9999999d", "2020-01-01", "2026-11-25T09:00:00Z", "soon"])
def test_an_end_that_is_none_or_past_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        read_expiry(text, NOW)
    with pytest.raises(InvalidInput):
        read_lifetime(text if text != "9999999d" else "")
