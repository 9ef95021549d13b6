"The gate on documentation: what it asks for, and what it takes as said elsewhere."
import dataclasses
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any, Protocol

import click
import pytest
from pydantic import Field
from typing_extensions import Doc

import apicheck
import docments as read_comments
from docments import docments, parameter_comments
from rlm.core.settings import Settings


def spread(path: str,   # first
           /,
           k: int = 1,  # second
           *rest: int,  # third
           deep: bool,  # fourth
           **more: Any,  # fifth
           ) -> int:
    "Every kind of parameter."
    return 0


def silent(path: str, **more: Any) -> int:
    "None has a comment."
    return 0


class Asks(Protocol):
    "A protocol."

    def get(self,
            id: str,  # id of a thing
            ) -> str:
        "One thing."

    def close(self) -> None:
        "Leave."


class Half:
    "Does a part of it."

    def get(self, id: str) -> str:
        "One thing."
        return id


class Whole(Half):
    "Does all of it."

    def close(self) -> None:
        "Leave."

    def other(self, id: str) -> None:
        "No protocol asks for this."


@dataclasses.dataclass
class Told:
    "A field with a sentence, and one without."

    one: int = dataclasses.field(default=1, metadata={"about": "How many."})
    two: int = 2


@click.command()
@click.argument("name")
@click.argument("place")
@click.option("--said", help="What for.")
@click.option("--unsaid")
def command(name: str, place: str, said: str, unsaid: str) -> None:
    "Move NAME."


def test_every_kind_of_parameter_has_its_comment() -> None:
    assert parameter_comments(spread) == {"path": "first", "k": "second", "rest": "third", "deep": "fourth", "more": "fifth"}
    assert [p.docment for p in docments(spread).values()] == ["first", "second", "third", "fourth", "fifth", None]


def test_a_type_may_say_what_its_parameter_is() -> None:
    def typed(id: Annotated[str, Field(description="Id of a thing.")], k: Annotated[int, "no sentence"] = 1) -> None:
        "Do it."
    assert [p.docment for p in docments(typed).values()] == ["Id of a thing.", None, None]


def test_a_class_of_ours_says_what_its_parameter_is() -> None:
    def opened(settings: Settings, path: Path, said: Annotated[str, Doc("what was said")]) -> None:
        "Do it."
    about = str(Settings.__doc__).partition("\n")[0]
    assert [p.docment for p in docments(opened).values()] == [about, None, "what was said", None]


def test_a_model_speaks_for_methods_of_the_same_name(monkeypatch: pytest.MonkeyPatch) -> None:
    assert docments(Half.get)["id"].docment is None
    monkeypatch.setattr(read_comments, "MODELS", {f"{__name__}:Half": (f"{__name__}:Asks",)})
    assert docments(Half.get)["id"].docment == "id of a thing"
    assert docments(Whole.other)["id"].docment is None


@pytest.fixture
def reader() -> Iterator[None]:
    "smalldocs reads comments with ours, for one test."
    before = apicheck.api.docments
    apicheck.docments.install()
    yield
    apicheck.api.docments = before


@pytest.fixture
def lacks(reader: None) -> Callable[[Any], list[str]]:
    "What the gate says of a name in this file."
    said = apicheck.said_by_protocols([Asks, Half, Whole])
    return lambda symbol: [gap.partition(":")[2] for gap in apicheck.gaps(symbol, said)]


def test_a_parameter_without_a_comment_is_found(lacks: Callable[[Any], list[str]]) -> None:
    assert lacks(spread) == []
    assert lacks(silent) == ["silent(path): no docment", "silent(more): no docment"]


def test_a_protocol_speaks_for_those_who_keep_it(lacks: Callable[[Any], list[str]]) -> None:
    assert lacks(Half.get) == []  # for `Whole`, which has the rest
    assert lacks(Whole.other) == ["Whole.other(id): no docment"]
    assert apicheck.said_by_protocols([Asks, Half]) == set()


def test_a_field_may_carry_its_sentence(lacks: Callable[[Any], list[str]]) -> None:
    assert lacks(Told) == ["Told(two): no docment"]


def test_options_need_help_and_arguments_a_word(lacks: Callable[[Any], list[str]]) -> None:
    assert lacks(command.callback) == ["command: the help does not say what PLACE is", "command: no help for --unsaid"]
