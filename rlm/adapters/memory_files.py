"""Text files below `/memories` kept in a `Memory`: each file is a memory, found by a search, and every change of it stays in its history.

The replies, and the texts of the errors, are those that Anthropic's memory tool promises to a model. There are no directories of their own:
a directory is there as long as a file lies below it. Credentials are taken out of what is written, as on every way in (setting `secrets`).
"""

import threading
from collections.abc import Callable, Sequence

from rlm.adapters.pages import AS_GIVEN, check_memory, every_memory
from rlm.core.errors import InvalidInput, VersionConflict
from rlm.core.text import is_blank
from rlm.service.memory import Memory
from rlm.store.records import MemoryRecord, read_label

ROOT = "/memories"
TAG = "memory-file"  # what all memories that hold a file are tagged with
DEPTH = 2  # levels of a directory that are shown
MOST_LINES = 999_999  # lines of a file that is shown; they set the width of line numbers
CONTEXT = 2  # lines shown before and after a replacement
RETRIES = 5  # times an edit is tried again when another process changed the file meanwhile
_BLANK = "blank"  # in `extra`, the text of a file without words: a memory can't be blank, so its own text is the path


def file_path(path: str,  # path that a model wrote
              ) -> str:   # without a slash at its end
    "Return the path of a file or directory, below `/memories`. Raises `InvalidInput` for one that leads elsewhere."
    if path != ROOT and not path.startswith(ROOT + "/"):
        raise InvalidInput(f"Path must start with {ROOT}, got: {path}")
    parts = list[str]()
    for part in path[len(ROOT):].split("/"):
        if part == "..":
            if not parts:
                raise InvalidInput(f"Path {path} would escape {ROOT} directory")
            parts.pop()
        elif part not in ("", "."):
            parts.append(part)
    return read_label("/".join([ROOT, *parts]), "path")


def file_size(count: int,  # bytes
              ) -> str:
    "Return a size as people read it: 0B, 512B, 1.5K."
    size, unit = float(count), 0
    while size >= 1024 and unit < 3:
        size, unit = size / 1024, unit + 1
    return f"{size:.1f}".removesuffix(".0") + "BKMG"[unit]


def numbered(lines: Sequence[str],  # lines of a file
             first: int,            # number of the first one
             ) -> str:
    "Return lines with their numbers, as the tool shows them."
    width = len(str(MOST_LINES))
    return "\n".join(f"{number:>{width}}\t{line}" for number, line in enumerate(lines, first))


def contents(record: MemoryRecord,  # memory that holds a file
             ) -> str:
    "Return the text of a file."
    return str(record.extra.get(_BLANK, record.text))


class MemoryFiles:
    "Files below `/memories`. Threads and processes may share them; two edits of one file at once are both made."

    def __init__(self,
                 memory: Memory,  # memory in which the files are kept
                 ) -> None:
        check_memory(memory)
        self.memory = memory
        self._lock = threading.RLock()  # held while something is looked up and then changed

    def view(self,
             path: str,                               # a file or a directory
             view_range: Sequence[int] | None = None,  # first and last line; -1: the end
             ) -> str:
        "Return a file with line numbers, or what lies in a directory. Raises `InvalidInput`."
        at = file_path(path)
        record = self._find(at)
        if record is None:
            return self._directory(at, path)
        lines, first = contents(record).split("\n"), 1
        if len(lines) > MOST_LINES:
            raise InvalidInput(f"File {path} exceeds maximum line limit of 999,999 lines.")
        if view_range and len(view_range) == 2:
            first = max(1, view_range[0])
            lines = lines[first - 1:None if view_range[1] == -1 else view_range[1]]
        return f"Here's the content of {path} with line numbers:\n{numbered(lines, first)}"

    def create(self,
               path: str,       # a file that is not there yet
               file_text: str,  # its text
               ) -> str:
        "Make a file. Raises `InvalidInput` if there is one."
        at = file_path(path)
        with self._lock:
            if at == ROOT or self._find(at) or self._below(at):
                raise InvalidInput(f"File {path} already exists")
            self._refuse_file_above(at)
            blank = is_blank(file_text)
            mine = self.memory.write(at if blank else file_text, category=at, tags=[TAG], source_type="memory-tool", provenance=AS_GIVEN,
                                     extra={_BLANK: file_text} if blank else {})
            if min(r.seq for r in self._all(at)) != mine.seq:  # another process was faster
                self.memory.delete(mine.id)
                raise InvalidInput(f"File {path} already exists")
        return f"File created successfully at: {path}"

    def str_replace(self,
                    path: str,     # a file
                    old_str: str,  # words that stand in it once
                    new_str: str,  # words to put there
                    ) -> str:
        "Replace words of a file, and return the lines around them. Raises `InvalidInput`, also if the words stand there twice."
        place = 0

        def replaced(text: str) -> str:
            nonlocal place
            count = text.count(old_str) if old_str else 0
            if not count:
                raise InvalidInput(f"No replacement was performed, old_str `{old_str}` did not appear verbatim in {path}.")
            if count > 1:
                numbers = [text.count("\n", 0, i) + 1 for i in range(len(text)) if text.startswith(old_str, i)]
                raise InvalidInput(f"No replacement was performed. Multiple occurrences of old_str `{old_str}` in lines: "
                                   f"{', '.join(map(str, numbers))}. Please ensure it is unique")
            place = text.count("\n", 0, text.find(old_str))
            return text.replace(old_str, new_str)
        lines = self._edit(path, replaced).split("\n")
        first = max(0, place - CONTEXT)
        shown = numbered(lines[first:place + CONTEXT + 1], first + 1)
        return f"The memory file has been edited. Here is the snippet showing the change (with line numbers):\n{shown}"

    def insert(self,
               path: str,         # a file
               insert_line: int,  # the line after which the text stands; 0: the beginning
               insert_text: str,  # lines to insert
               ) -> str:
        "Insert lines into a file. Raises `InvalidInput`."
        def inserted(text: str) -> str:
            lines = text.removesuffix("\n").split("\n") if text else []
            if not 0 <= insert_line <= len(lines):
                raise InvalidInput(f"Invalid `insert_line` parameter: {insert_line}. It should be within the range [0, {len(lines)}].")
            lines.insert(insert_line, insert_text.rstrip("\n"))
            return "\n".join(lines).removesuffix("\n") + "\n"  # as the SDK's own tool: of blank lines at the end one is taken
        self._edit(path, inserted)
        return f"The file {path} has been edited."

    def delete(self,
               path: str,  # a file or a directory
               ) -> str:
        "Delete a file, or all files of a directory; they can be restored, as any memory. Raises `InvalidInput`."
        at = file_path(path)
        if at == ROOT:
            raise InvalidInput(f"Cannot delete the {ROOT} directory itself")
        with self._lock:
            if not (found := self._at_or_below(at)):
                raise InvalidInput(f"The path {path} does not exist")
            self.memory.delete([r.id for r in found])
        return f"Successfully deleted {path}"

    def rename(self,
               old_path: str,  # a file or a directory
               new_path: str,  # a path where there is nothing
               ) -> str:
        "Rename a file, or move a directory with all its files; their histories stay. Raises `InvalidInput`."
        old, new = file_path(old_path), file_path(new_path)
        if old == ROOT:
            raise InvalidInput(f"Cannot rename the {ROOT} directory itself")
        with self._lock, self.memory.backend.transaction():
            if new == ROOT or self._at_or_below(new):
                raise InvalidInput(f"The destination {new_path} already exists")
            if not (found := self._at_or_below(old)):
                raise InvalidInput(f"The path {old_path} does not exist")
            if new.startswith(old + "/"):
                raise InvalidInput(f"The path {old_path} can't be moved into itself")
            self._refuse_file_above(new)
            for record in found:
                self.memory.update(record.id, category=new + str(record.category)[len(old):])
        return f"Successfully renamed {old_path} to {new_path}"

    def clear(self) -> str:
        "Delete all files; they can be restored, as any memory."
        with self._lock:
            if ids := [r.id for r in self._all()]:
                self.memory.delete(ids)
        return "All memory cleared"

    def _all(self, path: str | None = None) -> list[MemoryRecord]:
        "All files, or those of one path: more than one only for a moment, when two processes made it at once."
        found = every_memory(self.memory, tags=[TAG], category=path)
        return sorted(found, key=lambda r: (r.category or "", r.seq))

    def _find(self, path: str) -> MemoryRecord | None:
        return next(iter(self._all(path)), None)

    def _below(self, path: str) -> list[MemoryRecord]:
        return [r for r in self._all() if str(r.category).startswith(path + "/")]

    def _at_or_below(self, path: str) -> list[MemoryRecord]:
        return self._all(path) or self._below(path)

    def _refuse_file_above(self, path: str) -> None:
        "Refuse a path below something that is a file."
        parts = path.split("/")
        for n in range(3, len(parts)):
            if self._find(above := "/".join(parts[:n])):
                raise InvalidInput(f"The path {above} is a file, not a directory")

    def _edit(self, path: str, change: Callable[[str], str]) -> str:
        "Change the text of a file, and return the new one; anew if another process changed it meanwhile."
        at = file_path(path)
        with self._lock:
            left = RETRIES
            while True:
                if (record := self._find(at)) is None:
                    if at == ROOT or self._below(at):
                        raise InvalidInput(f"The path {path} is not a file.")
                    raise InvalidInput(f"The path {path} does not exist. Please provide a valid path.")
                text = change(contents(record))
                blank = is_blank(text)
                kept = {k: v for k, v in record.extra.items() if k != _BLANK} | ({_BLANK: text} if blank else {})
                try:
                    return contents(self.memory.update(record.id, if_version=record.version, text=at if blank else text, extra=kept))
                except VersionConflict:
                    left -= 1
                    if not left:
                        raise

    def _directory(self, at: str, path: str) -> str:
        "What lies in a directory, two levels deep; hidden names are left out."
        sizes = {at: 0}
        for record in self._below(at):
            parts = str(record.category)[len(at) + 1:].split("/")
            if any(part.startswith(".") for part in parts):
                continue
            size = len(contents(record).encode())
            sizes[at] += size
            for n in range(1, min(len(parts), DEPTH) + 1):
                name = "/".join(parts[:n]) + ("/" if n < len(parts) else "")
                sizes[name] = sizes.get(name, 0) + size
        if len(sizes) == 1 and at != ROOT and not self._below(at):
            raise InvalidInput(f"The path {path} does not exist. Please provide a valid path.")
        shown = [f"{file_size(sizes[at])}\t{path}", *(f"{file_size(sizes[n])}\t{path}/{n}" for n in sorted(sizes) if n != at)]
        return f"Here're the files and directories up to 2 levels deep in {path}, excluding hidden items:\n" + "\n".join(shown)
