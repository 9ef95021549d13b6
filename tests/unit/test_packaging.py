"What a user installs: the wheel's contents, its entry points and what it asks for."
import configparser
import subprocess
import sys
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

from tree import ROOT, copy_tree


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    "The wheel of the tree as it is, built offline in a copy."
    folder = tmp_path_factory.mktemp("wheel")
    source = copy_tree(folder / "source")
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation",
               "--disable-pip-version-check", "--wheel-dir", str(folder), str(source)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    [built] = folder.glob("*.whl")
    return zipfile.ZipFile(built)


def test_the_wheel_holds_every_module_and_all_data(wheel: zipfile.ZipFile) -> None:
    data = [p for p in (ROOT / "rlm" / "data").rglob("*") if p.is_file()]
    wanted = {p.relative_to(ROOT).as_posix() for p in [*(ROOT / "rlm").rglob("*.py"), *data]} | {"rlm/py.typed"}
    wanted |= {f"rlm/data/ontology/{p.name}" for p in (ROOT / "ontology").iterdir()}
    there = {name for name in wheel.namelist() if ".dist-info/" not in name}
    assert there == wanted


def test_the_wheel_has_its_commands_and_doc_links(wheel: zipfile.ZipFile) -> None:
    [name] = [n for n in wheel.namelist() if n.endswith("entry_points.txt")]
    points = configparser.ConfigParser()
    points.read_string(wheel.read(name).decode())
    assert points["console_scripts"]["rlm"] == "rlm.service.cli:main"
    assert points["nbdev"]["rlm"] == "rlm._modidx:d"


def test_the_wheel_says_what_it_is_and_needs(wheel: zipfile.ZipFile) -> None:
    settings = configparser.ConfigParser(delimiters=["="])
    settings.read(ROOT / "settings.ini", encoding="utf-8")
    [name] = [n for n in wheel.namelist() if n.endswith("METADATA")]
    said = Parser().parsestr(wheel.read(name).decode())
    wanted = {r.split(">=")[0].lower() for r in settings["DEFAULT"]["requirements"].split()}
    plain = {r.split(">=")[0].lower() for r in said.get_all("Requires-Dist", []) if "extra ==" not in r}
    assert plain == wanted
    assert said["Requires-Python"] == ">=3.11"
    assert said["Version"] == settings["DEFAULT"]["version"]


def test_the_licence_goes_with_it(wheel: zipfile.ZipFile) -> None:
    [name] = [n for n in wheel.namelist() if n.endswith("LICENSE")]
    assert wheel.read(name) == Path(ROOT / "LICENSE").read_bytes()


def test_development_tools_are_no_runtime_needs() -> None:
    code = "import sys, rlm; print([m for m in ('nbdev', 'fastcore', 'IPython', 'matplotlib', 'pytest') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
