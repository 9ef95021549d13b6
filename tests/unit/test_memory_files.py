"Files below /memories, as Anthropic's memory tool keeps them, in a memory."
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from rlm import Memory
from rlm.adapters.memory_files import MemoryFiles, file_path, file_size
from rlm.core.errors import InvalidInput


@pytest.fixture
def files() -> Iterator[MemoryFiles]:
    "Files in a fresh memory."
    with Memory(":memory:", embedder="none") as memory:
        yield MemoryFiles(memory)


def test_a_file_is_made_shown_and_found_by_a_search(files: MemoryFiles) -> None:
    assert files.create("/memories/시내.md", "치과는 화요일\nThe car is blue\n") == "File created successfully at: /memories/시내.md"
    assert files.view("/memories/시내.md") == (
        "Here's the content of /memories/시내.md with line numbers:\n     1\t치과는 화요일\n     2\tThe car is blue\n     3\t")
    assert files.view("/memories/시내.md", [2, 2]).endswith("numbers:\n     2\tThe car is blue")
    assert files.view("/memories/시내.md", [2, -1]).endswith("     2\tThe car is blue\n     3\t")
    assert files.memory.search("치과")[0].memory.category == "/memories/시내.md"


def test_a_directory_shows_two_levels_without_hidden_names(files: MemoryFiles) -> None:
    header = "Here're the files and directories up to 2 levels deep in /memories, excluding hidden items:\n"
    assert files.view("/memories") == header + "0B\t/memories"
    for path in ("a.md", "p/b.md", "p/q/c.md", ".hidden", "p/.git/x"):
        files.create(f"/memories/{path}", "12345")
    assert files.view("/memories") == header + (
        "15B\t/memories\n5B\t/memories/a.md\n10B\t/memories/p/\n5B\t/memories/p/b.md\n5B\t/memories/p/q/")
    with pytest.raises(InvalidInput, match=r"^The path /memories/nothing does not exist. Please provide a valid path.$"):
        files.view("/memories/nothing")


def test_a_file_is_not_made_twice_nor_below_a_file(files: MemoryFiles) -> None:
    files.create("/memories/a", "one")
    for path, said in (("/memories/a", "already exists"), ("/memories", "already exists"), ("/memories/a/b", "is a file, not a directory")):
        with pytest.raises(InvalidInput, match=said):
            files.create(path, "two")
    files.create("/memories/d/e", "x")
    with pytest.raises(InvalidInput, match="File /memories/d already exists"):
        files.create("/memories/d", "two")


def test_words_are_replaced_where_they_stand_once(files: MemoryFiles) -> None:
    files.create("/memories/a", "\n".join(f"line {n}" for n in range(1, 10)))
    assert files.str_replace("/memories/a", "line 5", "fünf") == (
        "The memory file has been edited. Here is the snippet showing the change (with line numbers):\n"
        "     3\tline 3\n     4\tline 4\n     5\tfünf\n     6\tline 6\n     7\tline 7")
    with pytest.raises(InvalidInput, match="did not appear verbatim in /memories/a"):
        files.str_replace("/memories/a", "line 5", "x")
    with pytest.raises(InvalidInput, match=r"in lines: 1, 2, 3, 4, 6, 7, 8, 9. Please ensure it is unique"):
        files.str_replace("/memories/a", "line", "x")
    with pytest.raises(InvalidInput, match="did not appear"):
        files.str_replace("/memories/a", "", "x")
    with pytest.raises(InvalidInput, match="does not exist"):
        files.str_replace("/memories/b", "line", "x")
    assert [r.version for r in files.memory.history(files.memory.list(1)[0].id).versions] == [1, 2]


def test_lines_are_inserted_also_into_an_empty_file(files: MemoryFiles) -> None:
    files.create("/memories/a", "")
    assert files.view("/memories/a").endswith("numbers:\n     1\t")
    assert files.insert("/memories/a", 0, "first\n") == "The file /memories/a has been edited."
    files.insert("/memories/a", 1, "third")
    files.insert("/memories/a", 1, "second")
    assert files.view("/memories/a").endswith("     1\tfirst\n     2\tsecond\n     3\tthird\n     4\t")
    for line in (-1, 4):
        with pytest.raises(InvalidInput, match=rf"parameter: {line}. It should be within the range \[0, 3\]"):
            files.insert("/memories/a", line, "x")
    files.create("/memories/blank", " \n\n")
    assert files.view("/memories/blank").endswith("numbers:\n     1\t \n     2\t\n     3\t")
    files.create("/memories/d/e", "x")
    with pytest.raises(InvalidInput, match="is not a file"):
        files.insert("/memories/d", 0, "x")


def test_a_renamed_file_keeps_its_history_and_a_directory_moves_whole(files: MemoryFiles) -> None:
    for path in ("p/a", "p/q/b", "pp"):
        files.create(f"/memories/{path}", path)
    assert files.rename("/memories/p", "/memories/new/p") == "Successfully renamed /memories/p to /memories/new/p"
    assert files.view("/memories/new/p/q/b").endswith("\tp/q/b")
    assert len(files.memory.history(next(r.id for r in files.memory.list(9) if r.category == "/memories/new/p/a")).versions) == 2
    for old, new, said in (("/memories/p", "/memories/z", "does not exist"), ("/memories/pp", "/memories/new", "already exists"),
                           ("/memories", "/memories/z", "Cannot rename"), ("/memories/new", "/memories/new/x", "into itself"),
                           ("/memories/new", "/memories/pp/x", "is a file")):
        with pytest.raises(InvalidInput, match=said):
            files.rename(old, new)
    assert sorted(str(r.category) for r in files.memory.list(9)) == ["/memories/new/p/a", "/memories/new/p/q/b", "/memories/pp"]


def test_a_deleted_directory_leaves_its_neighbours(files: MemoryFiles) -> None:
    for path in ("p/a", "p/q/b", "pp/c", "p%", "p_"):
        files.create(f"/memories/{path}", path)
    assert files.delete("/memories/p/") == "Successfully deleted /memories/p/"
    assert sorted(str(r.category) for r in files.memory.list(9)) == ["/memories/p%", "/memories/p_", "/memories/pp/c"]
    with pytest.raises(InvalidInput, match=r"The path /memories/p does not exist"):
        files.delete("/memories/p")
    with pytest.raises(InvalidInput, match="Cannot delete the /memories directory itself"):
        files.delete("/memories/")
    files.create("/memories/p/a", "again")
    files.clear()
    assert files.view("/memories").endswith("0B\t/memories")


@pytest.mark.parametrize("path", ["/etc/passwd", "memories/a", "/memories/../etc", "/memories/a/../../b", "/memoriesx", "",
                                  "/memories/a\nb", "/memories/a\0b", "/memories/" + "x" * 600])
def test_a_path_that_leads_elsewhere_or_is_none_is_refused(files: MemoryFiles, path: str) -> None:
    for call in (lambda: files.create(path, "x"), lambda: files.view(path), lambda: files.delete(path)):
        with pytest.raises(InvalidInput):
            call()
    assert not files.memory.list(1)


def test_a_path_is_known_however_it_is_spelled() -> None:
    assert {file_path(p) for p in ("/memories/a/b", "/memories//a/./b/", "/memories/x/../a/b")} == {"/memories/a/b"}
    assert [file_size(n) for n in (0, 512, 1024, 1536, 3 * 1024 ** 2)] == ["0B", "512B", "1K", "1.5K", "3M"]


def test_edits_at_once_are_all_made(files: MemoryFiles) -> None:
    files.create("/memories/a", "begin\n")
    others = [MemoryFiles(files.memory) for _ in range(4)]  # as other processes: each with a lock of its own
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda n: others[n].insert("/memories/a", 1, f"line {n}"), range(4)))
    assert sorted(files.view("/memories/a").split("\n")[2:-1], key=lambda line: line[-1])[0].endswith("line 0")
    assert all(f"line {n}" in files.view("/memories/a") for n in range(4))


def test_a_file_is_not_ended_by_what_another_says(files: MemoryFiles) -> None:
    files.create("/memories/home.md", "I live in Seoul.\n")
    files.create("/memories/move.md", "I moved to Busan.\n")
    assert "I live in Seoul." in files.view("/memories/home.md") and "home.md" in files.view("/memories")
