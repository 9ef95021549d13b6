"""Fail when a name that the API reference shows lacks a docstring, a type, or the comment beside a parameter that says
what it is. The rules are those of `smalldocs api check`, with these exceptions:

- private helpers, which the reference leaves out
- a comment on what is returned: the docstring says it
- the constructor of a protocol, which nobody calls
- a method that does what a protocol of ours asks for: the protocol says what the parameters of that name are
- a setting in `Settings`: its sentence is its metadata
- the function behind a command: its options have help, which is checked here, and its docstring names its arguments in
  capitals, which is checked too
"""
import dataclasses
import inspect
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

from smalldocs import api

import docments
from tree import ROOT


def documented(module: ModuleType,  # an imported module
               ) -> list[Any]:      # its functions and classes, each class followed by its methods
    "What the API reference shows of a module."
    return [shown for top in api.own(module) for shown in [top, *(api.methods(top) if inspect.isclass(top) else [])]]


def said_by_protocols(classes: list[type],  # those of the package, protocols among them
                      ) -> set[str]:        # names of parameters, each as `module:Class.method(parameter)`
    "Parameters that a protocol documents: those of its methods, in every class that has all of the protocol's methods."
    said = set()
    protocols = [c for c in classes if getattr(c, "_is_protocol", False)]
    for protocol in protocols:
        asked = {m.__name__: m for base in protocol.__mro__ if base in protocols for m in api.methods(base)}
        for keeper in (c for c in classes if c not in protocols):
            kept = {name: inspect.unwrap(getattr(keeper, name, None) or repr) for name in asked}
            if all(inspect.isfunction(method) for method in kept.values()):
                said |= {f"{kept[name].__module__}:{kept[name].__qualname__}({p})"
                         for name, method in asked.items() for p in inspect.signature(method).parameters}
    return said


def said_by_metadata(symbol: Any,   # a function, method or class
                     ) -> set[str]:  # names of parameters, as above
    "Fields of a dataclass that carry a sentence about themselves."
    fields = dataclasses.fields(symbol) if inspect.isclass(symbol) and dataclasses.is_dataclass(symbol) else ()
    return {f"{symbol.__module__}:{symbol.__qualname__}({f.name})" for f in fields if f.metadata.get("about")}


def command_gaps(command: Any,       # a click command
                 name: str,          # how a message should call it
                 ) -> Iterator[str]:  # one message for each gap
    "Options without help, and arguments that the help text does not name."
    for parameter in command.params:
        if parameter.param_type_name == "option" and not parameter.help:
            yield f"{name}: no help for {parameter.opts[0]}"
        if parameter.param_type_name == "argument" and parameter.human_readable_name not in (command.help or ""):
            yield f"{name}: the help does not say what {parameter.human_readable_name} is"


def gaps(symbol: Any,     # a function, method or class
         said: set[str],  # parameters documented elsewhere
         ) -> list[str]:  # one message for each gap
    "What a name lacks."
    found = [gap for gap in api.gaps_of(symbol) if not gap.endswith("no return docment")]
    if getattr(symbol, "_is_protocol", False):
        found = [gap for gap in found if not gap.startswith(f"{symbol.__module__}:{symbol.__qualname__}(")]
    if inspect.isfunction(symbol) and (command := api.command_of(symbol, sys.modules[symbol.__module__])):
        found = [gap for gap in found if not gap.endswith("no docment")]
        found += command_gaps(command, f"{symbol.__module__}:{symbol.__qualname__}")
    elsewhere = said | said_by_metadata(symbol)
    return [gap for gap in found if not (gap.endswith(": no docment") and gap.removesuffix(": no docment") in elsewhere)]


def main() -> int:  # the exit code: 0 when nothing is missing
    "Check every public name of the package and of the tools."
    sys.path[:0] = [str(ROOT)]
    docments.install()
    docments.stand_in_frameworks()
    tools = sorted((ROOT / "tools").glob("*.py"))
    modules = api.package_modules("rlm") + api.file_modules(tools, ROOT)
    symbols = [symbol for module in modules for symbol in documented(module)]
    said = said_by_protocols([s for s in symbols if inspect.isclass(s)])
    missing = [f"{m.__name__}: no module docstring" for m in modules if not api.doc(m)]
    missing += [gap for symbol in symbols for gap in gaps(symbol, said)]
    print("\n".join(missing) if missing else f"{len(symbols)} public names are typed and documented.")
    return int(bool(missing))


if __name__ == "__main__":
    sys.exit(main())
