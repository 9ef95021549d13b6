"A package of the npm registry, fetched by `npm pack` and unpacked."
import shutil
import subprocess
import tarfile
from pathlib import Path


def _unpack(tar: tarfile.TarFile,  # archive of a package
            part: Path,            # where to, without links in it
            ) -> None:
    "The plain files, none of which may lie elsewhere: what `filter='data'` sees to, which Python has from 3.11.4 on."
    for member in tar:
        if member.isfile():
            place, content = (part / member.name).resolve(), tar.extractfile(member)
            if not place.is_relative_to(part) or content is None:
                raise ValueError(f"The package holds {member.name!r}, which is not below its folder.")
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content.read())


def fetch(package: str,  # its name
          version: str,  # exact
          home: Path,    # where to unpack it: below the folder `package`
          ) -> str:      # why it can't be had; empty when it is there
    "Fetch a package and unpack it, whole or not at all."
    if (home / "package").is_dir():
        return ""
    npm = shutil.which("npm")
    if npm is None:
        return "npm is not installed"
    home.mkdir(parents=True, exist_ok=True)
    done = subprocess.run([npm, "pack", "--silent", f"{package}@{version}"], cwd=home, capture_output=True, text=True, check=False)
    archive = home / (done.stdout.split() or ["nothing"])[-1]
    if done.returncode or not archive.is_file():
        return f"npm could not fetch {package} {version}: {done.stderr.strip() or 'it said nothing'}"
    part = home / "part"
    shutil.rmtree(part, ignore_errors=True)
    with tarfile.open(archive) as tar:
        _unpack(tar, part.resolve())
    (part / "package").rename(home / "package")
    part.rmdir()
    archive.unlink()
    return ""
