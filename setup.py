"Packaging, read from settings.ini so that every fact is stated once."
from configparser import ConfigParser
from pathlib import Path

from setuptools import find_packages, setup
from setuptools.command.build_py import build_py


class BuildWithOntologies(build_py):
    "The ontologies lie in `ontology/`, where people look for them; in a wheel they are data of the package."

    def run(self) -> None:
        super().run()
        if not self.editable_mode:
            target = Path(self.build_lib, "rlm", "data", "ontology")
            self.mkpath(str(target))
            for file in sorted(Path("ontology").glob("*.*")):
                self.copy_file(str(file), str(target / file.name))

parser = ConfigParser(delimiters=["="])
parser.read("settings.ini", encoding="utf-8")
cfg = parser["DEFAULT"]

extras = {key.removesuffix("_extra"): cfg[key].strip().splitlines() for key in cfg if key.endswith("_extra")}
# what the tests can run anywhere
tried = [package for name in ("openai", "m2v", "agent", "rules", "serve", "mcp", "otel", "federation", "postgres")
         for package in extras[name]]

setup(
    name=cfg["lib_name"],
    version=cfg["version"],
    description=cfg["description"],
    long_description=Path("README.md").read_text(encoding="utf-8"),
    long_description_content_type="text/markdown",
    author=cfg["author"],
    author_email=cfg["author_email"],
    license="Apache-2.0",
    url=cfg["git_url"],
    keywords=cfg["keywords"],
    python_requires=f">={cfg['min_python']}",
    packages=find_packages(include=["rlm", "rlm.*"]),
    package_data={"rlm": ["py.typed", "data/**/*"]},
    install_requires=cfg["requirements"].split(),
    extras_require=extras | {"dev": cfg["dev_requirements"].split() + tried},
    entry_points={
        "console_scripts": cfg["console_scripts"].split(),
        "nbdev": ["rlm=rlm._modidx:d"],
    },
    cmdclass={"build_py": BuildWithOntologies},
    zip_safe=False,
)
