"Each requirement of the design documents has a test, and the page that tells so is up to date."
from pathlib import Path

import seeds


def test_each_requirement_has_a_test_and_the_page_tells_which() -> None:
    shown, asked = seeds.marked(seeds.ROOT / "tests"), seeds.wanted()
    assert not seeds.mistakes(shown, asked)
    assert seeds.PAGE.read_text(encoding="utf-8") == seeds.page(shown, asked), "python tools/seeds.py writes it"


def test_a_requirement_without_a_test_and_a_marker_without_a_requirement_are_told(tmp_path: Path) -> None:
    asked = {"000 Rules": {"000 a": "one", "000 b": "another"}}
    shown = {"000 a": [("tests/test_x.py", "test_a")], "000 c": [("tests/test_x.py", "test_c")]}
    assert seeds.mistakes(shown, asked) == ["No test shows the requirement '000 b'.", "test_c names '000 c', which is no requirement."]
    assert "[test_a](../../tests/test_x.py)" in seeds.page(shown, asked)
