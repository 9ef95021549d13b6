"The token file: who may call the server, for which namespace, and what for."
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from rlm.core.errors import InvalidInput, NotFound, RlmError, SettingsError
from rlm.service.http.tokens import TokenFile


@pytest.fixture
def book(tmp_path: Path) -> TokenFile:
    return TokenFile(tmp_path / "tokens")


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


@pytest.mark.parametrize("line", ["beef\tdefault\tread", f"{'0' * 64}\tdefault\tall", f"{'0' * 64}\tdefault", "nonsense"])
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
