"The project's tree, and throw-away copies of it to work on."
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DERIVED = {"_docs", "_proc", "build", "dist", "node_modules", "__pycache__"}  # never part of a tree without git


def project_files(root: Path = ROOT,  # the project's folder
                  ) -> list[Path]:    # paths relative to it, sorted
    "Every file of the project: what git tracks, and new files that it does not ignore."
    listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                            cwd=root, capture_output=True, check=False) if (root / ".git").exists() else None
    if listed is None or listed.returncode:
        return _walk(root)
    names = {Path(os.fsdecode(name)) for name in listed.stdout.split(b"\0") if name}
    return sorted(name for name in names if (root / name).is_file())


def _walk(root: Path,       # a tree without git, such as an unpacked archive
          ) -> list[Path]:  # its files, hidden and derived folders left out
    "The project's files where there is no git to ask."
    found = []
    for folder, folders, files in os.walk(root):
        here = Path(folder).relative_to(root)
        folders[:] = [f for f in folders if f not in DERIVED and not f.endswith(".egg-info")
                      and (not f.startswith(".") or f in (".ci", ".github"))]
        found += [here / f for f in files]
    return sorted(found)


def copy_tree(target: Path,  # where to; need not exist
              ) -> Path:     # the same, resolved
    "Copy the project as it is now, uncommitted changes too, so that a tool can work without touching it."
    target = target.resolve()
    for name in project_files():
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, target / name)
    return target


def run_in(tree: Path,   # the copy to run in
           *words: str,  # a tool of this environment (`nbdev_export`), or a script of the copy (`tools/readme.py`)
           ) -> None:
    "Run a tool in a copy, with the copy's own `rlm` first on the path; its output shows only when it fails."
    command = [sys.executable, *words] if words[0].endswith(".py") else [str(_beside_python(words[0])), *words[1:]]
    env = {**os.environ, "PYTHONPATH": str(tree)}
    env.pop("IN_TEST", None)  # nbdev exports nothing while it is set
    done = subprocess.run(command, cwd=tree, env=env, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(words)} failed:\n{done.stdout}{done.stderr}")


def _beside_python(name: str,  # a console script
                   ) -> Path:  # its path in this environment
    "The console script that was installed beside the running Python."
    return Path(sys.executable).with_name(name)
