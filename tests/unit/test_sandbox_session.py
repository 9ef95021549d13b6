"A sandbox over a session says what became of earlier steps, also when a variable is set or read."

import io
import sys

import pytest

from rlm.agent.sandbox.guest import LINE, LineChannel, load_modules
from rlm.agent.sandbox.interpreter import SAFE_MODULES
from rlm.agent.sandbox.protocol import Limits
from rlm.agent.sandbox.session import InterpreterSandbox, Recovery, SessionLost
from rlm.core.errors import InvalidInput


class BrokenSession:
    "A session that is lost at every request, and comes back as it is told to."

    def __init__(self, recovery: Recovery) -> None:
        self.recovery, self.restored = recovery, 0

    def exchange(self, request: object) -> dict[str, object]:
        raise SessionLost("memory", "MemoryError: it is too large")

    def restore(self) -> Recovery:
        self.restored += 1
        return self.recovery

    def dump(self) -> bytes:
        return b""

    def load(self, state: bytes) -> None: ...

    def close(self) -> None: ...


@pytest.mark.parametrize(("recovery", "said"), [
    (Recovery(), ""), (Recovery("So are the last 2 steps.", dropped=2), " So are the last 2 steps."),
    (Recovery("All variables are gone.", lost=True), " All variables are gone.")])
def test_setting_and_reading_a_variable_say_which_steps_are_undone(recovery: Recovery, said: str) -> None:
    session = BrokenSession(recovery)
    box = InterpreterSandbox("toy", True, lambda bridge: session)
    box.start({}, {}, Limits())
    with pytest.raises(InvalidInput) as put:
        box.put("x", 1)
    assert put.value.message == f"x does not fit into the sandbox (MemoryError: it is too large).{said}"
    with pytest.raises(InvalidInput) as got:
        box.get("x")
    assert got.value.message == f"x can't be read (MemoryError: it is too large).{said}"
    assert session.restored == 2


def test_a_channel_carries_a_line_for_each_message_and_none_that_is_too_long() -> None:
    answers, sent = io.BytesIO(b'{"value": [1, 2]}\n'), io.BytesIO()
    assert LineChannel(answers, sent).ask({"ask": "find"}) == {"value": [1, 2]} and sent.getvalue() == b'{"ask": "find"}\n'
    with pytest.raises(ValueError, match="16,777,230 characters are too much"):
        LineChannel(answers, sent).write({"value": "x" * LINE})


def test_what_a_child_may_import_is_imported_before_it_has_no_files() -> None:
    load_modules()
    assert set(sys.modules) > SAFE_MODULES
