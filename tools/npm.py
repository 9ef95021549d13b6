"A package of the npm registry, fetched by `npm pack` and unpacked."
import shutil
import subprocess
import tarfile
from pathlib import Path


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
        tar.extractall(part, filter="data")
    (part / "package").rename(home / "package")
    part.rmdir()
    archive.unlink()
    return ""
