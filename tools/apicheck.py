"""Fail when a name that the API reference shows lacks a docstring, a type, or the comment beside a parameter that says
what it is. The rules are those of `smalldocs api check`, but for private helpers, which the reference leaves out, and for
a comment on what is returned: the docstring says it."""
import inspect
import sys
from types import ModuleType
from typing import Any

from smalldocs import api

from tree import ROOT


def documented(module: ModuleType,  # an imported module
               ) -> list[Any]:      # its functions and classes, each class followed by its methods
    "What the API reference shows of a module."
    return [shown for top in api.own(module) for shown in [top, *(api.methods(top) if inspect.isclass(top) else [])]]


def gaps(symbol: Any,      # a function, method or class
         ) -> list[str]:  # one message for each gap
    "What a name lacks; a protocol is never constructed, so it needs no words on how to."
    found = [gap for gap in api.gaps_of(symbol) if not gap.endswith("no return docment")]
    constructor = f"{symbol.__module__}:{symbol.__qualname__}("
    return [gap for gap in found if not (getattr(symbol, "_is_protocol", False) and gap.startswith(constructor))]


def main() -> int:  # the exit code: 0 when nothing is missing
    "Check every public name of the package and of the tools."
    sys.path[:0] = [str(ROOT)]
    tools = sorted((ROOT / "tools").glob("*.py"))
    modules = api.package_modules("rlm") + api.file_modules(tools, ROOT)
    symbols = [symbol for module in modules for symbol in documented(module)]
    missing = [f"{m.__name__}: no module docstring" for m in modules if not api.doc(m)]
    missing += [gap for symbol in symbols for gap in gaps(symbol)]
    print("\n".join(missing) if missing else f"{len(symbols)} public names are typed and documented.")
    return int(bool(missing))


if __name__ == "__main__":
    sys.exit(main())
