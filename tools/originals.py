"""The originals of the bundled ontologies, as the npm packages `@vocabulary/…` have them, for the tests that compare: prints the folder
that RLM_NPM should name. Says what can't be had, and then ends with 1; the tests skip those."""
import argparse
import sys
from pathlib import Path

from npm import fetch

ROOT = Path(__file__).resolve().parent.parent
NAMES, VERSION = ("org", "prov", "skos", "sosa", "ssn", "time"), "1.0.6"  # see ontology/SOURCES.md


def main() -> int:
    "Fetch what is not there yet."
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT / ".cache" / "npm" / f"vocabulary-{VERSION}", help="keeps them")
    folder = parser.parse_args().folder.resolve()
    missing = [said for name in NAMES if (said := fetch(f"@vocabulary/{name}", VERSION, folder / name))]
    print("\n".join(dict.fromkeys(missing)), file=sys.stderr, end="\n" if missing else "")
    print(folder)
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
