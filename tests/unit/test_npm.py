"What a package holds is unpacked below its folder, or not at all."
import io
import sys
import tarfile
from pathlib import Path

import pytest


def packed(name: str, kind: bytes = tarfile.REGTYPE) -> tarfile.TarFile:
    "An archive of one member."
    raw, member = io.BytesIO(), tarfile.TarInfo(name)
    member.type, member.linkname, member.size = kind, "/etc/passwd", 3 if kind == tarfile.REGTYPE else 0
    with tarfile.open(fileobj=raw, mode="w") as tar:
        tar.addfile(member, io.BytesIO(b"abc"))
    raw.seek(0)
    return tarfile.open(fileobj=raw)


def test_only_plain_files_below_the_folder_are_unpacked(tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [str(root / "tools"), *sys.path])
    from npm import _unpack
    part = tmp_path.resolve() / "part"
    _unpack(packed("package/dist/a.js"), part)
    _unpack(packed("package/link", tarfile.SYMTYPE), part)
    assert [p.relative_to(part).as_posix() for p in part.rglob("*") if not p.is_dir()] == ["package/dist/a.js"]
    for name in ("../outside", "package/../../outside", str(tmp_path / "outside")):
        with pytest.raises(ValueError, match="not below its folder"):
            _unpack(packed(name), part)
    assert not (tmp_path / "outside").exists()
