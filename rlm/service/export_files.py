"""Files of an export: of a folder, of a zip archive or of one within it, and what they hold as text."""

import re
import zipfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

from rlm.core.errors import InvalidInput, NotFound

MOST_BYTES = 4_000_000_000  # bytes of one file of an export, unpacked
MOST_NESTED = 4  # archives within one another; one that holds itself has no end
_UNSEEN = re.compile(r"(?:^|/)(?:\.|__MACOSX/)")  # settings of programs, deleted notes, and what a Mac adds to an archive


def export_files(path: Path,        # a file, a folder or a zip archive
                 wanted: re.Pattern[str],  # pattern of the files of a folder or an archive that count
                 ) -> Iterator[tuple[str, Callable[[int], bytes]]]:  # name, and what reads so many bytes of it; -1: all
    """Yield the files of an export; an archive within an archive is one with it, and hidden files are passed over. Raises `NotFound` when
    there is none."""
    if not path.exists():
        raise NotFound(f"There is no file {str(path)!r}.", "Check the path.")
    found = 0
    if path.is_dir():
        for name, file in sorted((p.relative_to(path).as_posix(), p) for p in path.rglob("*") if p.is_file()):
            if wanted.search(name) and not _UNSEEN.search(name):
                found += 1
                yield name, partial(_read_file, file)
    elif zipfile.is_zipfile(path):
        try:
            with zipfile.ZipFile(path) as archive:
                for name, read in _archive_files(archive, wanted):
                    found += 1
                    yield name, read
        except zipfile.BadZipFile as e:
            raise InvalidInput(f"The archive {str(path)!r} can't be read ({e}).", "Download it again, or unpack it.") from e
    else:
        found = 1
        yield path.name, partial(_read_file, path)
    if not found:
        raise NotFound(f"Nothing in {str(path)!r} is called like {wanted.pattern}.",
                       "Give the export as it was downloaded, or a file of it.")


def _read_file(path: Path, size: int) -> bytes:
    with open(path, "rb") as file:
        return file.read(size)


def _archive_files(archive: zipfile.ZipFile, wanted: re.Pattern[str], depth: int = 1) -> Iterator[tuple[str, Callable[[int], bytes]]]:
    for info in sorted(archive.infolist(), key=lambda i: i.filename):
        name = info.filename
        if not info.flag_bits & 0x800:  # a name that is not in UTF-8: of Windows in Korean, if it can be
            with suppress(UnicodeError):
                name = name.encode("cp437").decode("cp949")
        if info.is_dir() or _UNSEEN.search(name):
            continue
        if wanted.search(name):
            yield name, partial(_read_member, archive, info)
        elif name.lower().endswith(".zip") and info.file_size <= MOST_BYTES and depth < MOST_NESTED:
            try:
                with archive.open(info) as member, zipfile.ZipFile(member) as inner:
                    yield from _archive_files(inner, wanted, depth + 1)
            except (zipfile.BadZipFile, RuntimeError) as e:  # it is damaged, or has a password
                yield name, partial(_refuse, e)


def _refuse(error: Exception, size: int) -> bytes:
    raise error


def _read_member(archive: zipfile.ZipFile, info: zipfile.ZipInfo, size: int) -> bytes:
    if size < 0 and info.file_size > MOST_BYTES:
        raise InvalidInput(f"{info.filename!r} has {info.file_size:,} bytes unpacked.", "Unpack it, and give a part.")
    with archive.open(info) as member:
        return member.read(size)


def text_of(data: bytes,  # content of a text file, or its beginning
            ) -> str:
    "Return the text of a file in UTF-8, in UTF-16 with its mark, or as Windows writes Korean."
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return data.decode("utf-16", "replace")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as e:
        if e.reason == "unexpected end of data":  # a beginning that is cut within a letter
            return data[:e.start].decode("utf-8-sig")
        return data.decode("cp949", "replace")
