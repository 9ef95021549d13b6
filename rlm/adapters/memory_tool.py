"""Anthropic's memory tool (`memory_20250818`) over a `Memory`: give `MemoryTool(memory)` to `client.beta.messages.tool_runner(tools=[…])`.

Needs `anthropic` 0.121 or newer. The files are those of `rlm.adapters.memory_files`: below `/memories`, found by a search, with a history.
"""

from collections.abc import Callable
from typing import Any

from rlm.core.errors import RlmError, need

need("anthropic", "The memory tool", "")

from anthropic.lib.tools import BetaAbstractMemoryTool, ToolError

from rlm.adapters.memory_files import MemoryFiles
from rlm.service.memory import Memory


class MemoryTool(BetaAbstractMemoryTool):
    "Anthropic's memory tool over a memory. Threads may share it."

    def __init__(self,
                 memory: Memory,            # memory in which the files are kept; a person's own namespace
                 cache_control: Any = None,  # cache control in the SDK's form
                 ) -> None:
        super().__init__(cache_control=cache_control)
        self.files = MemoryFiles(memory)

    def view(self,
             command: Any,  # path, view_range
             ) -> str:
        "Return a file with line numbers, or what lies in a directory."
        return _replied(self.files.view, command.path, command.view_range)

    def create(self,
               command: Any,  # path, file_text
               ) -> str:
        "Make a file."
        return _replied(self.files.create, command.path, command.file_text)

    def str_replace(self,
                    command: Any,  # path, old_str, new_str
                    ) -> str:
        "Replace words of a file."
        return _replied(self.files.str_replace, command.path, command.old_str, command.new_str or "")

    def insert(self,
               command: Any,  # path, insert_line, insert_text
               ) -> str:
        "Insert lines into a file."
        return _replied(self.files.insert, command.path, command.insert_line, command.insert_text)

    def delete(self,
               command: Any,  # path
               ) -> str:
        "Delete a file or a directory."
        return _replied(self.files.delete, command.path)

    def rename(self,
               command: Any,  # old_path, new_path
               ) -> str:
        "Rename a file or a directory."
        return _replied(self.files.rename, command.old_path, command.new_path)

    def clear_all_memory(self) -> str:
        "Delete all files."
        return _replied(self.files.clear)


def _replied(call: Callable[..., str], *args: Any) -> str:
    "The reply of a command; what it refuses is an error of the tool, which the model reads."
    try:
        return call(*args)
    except RlmError as e:
        raise ToolError(" ".join(part for part in (e.message, e.hint) if part)) from e
