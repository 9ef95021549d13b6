"""The comment beside each parameter, for smalldocs. fastcore, which reads them, passes over `**fields` and parameters
before a `/`, and takes the comment of `**fields` for one on what is returned; here every parameter has its own. A parameter
without a comment is described where its words stand once: in its type, `Annotated[…, Field(description=…)]` or `Annotated[…, Doc(…)]`,
by the first line of a class of ours that is its type, or, of a class in `MODELS`, beside the parameter of that name in a model's method
of the same name."""
import ast
import dataclasses
import inspect
import io
import sys
import textwrap
import tokenize
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any, get_type_hints

import fastcore.docments as fastcore
from smalldocs import api


def parameter_comments(function: Any,      # a function or method with source
                       ) -> dict[str, str]:  # parameter → comment; what is returned counts as `return`
    "The comment on the line of each parameter."
    source = textwrap.dedent(inspect.getsource(inspect.unwrap(function)))
    node = ast.parse(source).body[0]
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return {}
    said = {t.start[0]: t.string.lstrip("# ") for t in tokenize.generate_tokens(io.StringIO(source).readline)
            if t.type == tokenize.COMMENT}
    one = [a for a in (node.args.vararg, node.args.kwarg) if a]
    lines = {a.arg: a.lineno for a in [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs, *one]}
    if node.returns and node.returns.lineno not in lines.values():
        lines["return"] = node.returns.lineno
    return {name: said[line] for name, line in lines.items() if line in said}


MODELS = {  # class → classes of whose methods its own have the names, and take what those take
    "rlm.service.remote:RemoteMemory": ("rlm.service.memory:Memory", "rlm.service.companion:Companion")}


def type_words(hint: Any,  # type of a parameter
               ) -> str:   # empty: it says nothing
    "What a type says of its parameter: its description, or of a class of ours the first line of its docstring."
    said = [getattr(m, "description", "") or getattr(m, "documentation", "") for m in getattr(hint, "__metadata__", ())]
    if inspect.isclass(hint) and hint.__module__.startswith("rlm."):
        said.append((inspect.getdoc(hint) or "").partition("\n")[0])
    return next(filter(None, said), "")


def described_types(function: Any,      # a function or method
                    ) -> dict[str, str]:  # parameter → description in its type
    "What types say of parameters; nothing where a type is imported for checks alone."
    try:
        hints = get_type_hints(function, include_extras=True)
    except NameError:
        return {}
    return {name: said for name, hint in hints.items() if name != "return" and (said := type_words(hint))}


def model_comments(function: Any,      # a function or method
                   ) -> dict[str, str]:  # parameter → comment
    "The comments in the first model of a method's class, by `MODELS`, that has a method of its name; none where there is no model."
    owner, _, name = function.__qualname__.rpartition(".")
    for module, _, model in (place.partition(":") for place in MODELS.get(f"{function.__module__}:{owner}", ())):
        if inspect.isfunction(found := getattr(getattr(import_module(module), model), name, None)):
            return parameter_comments(found)
    return {}


def docments(symbol: Any,           # a function, method or class
             full: bool = True,     # types and defaults too
             ) -> dict[str, Any]:   # parameter → what fastcore knows of it, with the right comment
    "As fastcore reads them, with the comments that it misses."
    found: dict[str, Any] = fastcore.docments(symbol, full=full)
    function = symbol.__init__ if inspect.isclass(symbol) and not dataclasses.is_dataclass(symbol) else symbol
    if inspect.isfunction(function):
        said = described_types(function) | model_comments(function) | parameter_comments(function)
        for name, entry in found.items():
            entry.docment = said.get(name) or (None if name == "return" else entry.docment)
    return found


def install() -> None:
    "Let smalldocs read parameters with `docments`."
    api.docments = docments


class StandIn:
    "What stands for a class of a framework that is not installed."

    def __class_getitem__(cls, item: object) -> type["StandIn"]:
        "Return the class itself."
        return cls


FRAMEWORKS = (  # modules that adapters and tools import when they are imported
    "langgraph.store.base", "langgraph.checkpoint.base", "anthropic.lib.tools", "llama_index.core.base.llms.types",
    "llama_index.core.memory", "google.adk.memory.base_memory_service", "google.adk.memory.memory_entry", "google.genai.types",
    "agent_framework", "pydantic_ai_harness.memory", "crewai.memory.storage.backend", "crewai.memory.types",
    "torch.nn")


def stand_in_frameworks() -> None:
    "Let modules be imported that inherit from a framework which is not installed: only names are looked at."
    for module in FRAMEWORKS:
        parts = module.split(".")
        for name in (".".join(parts[:n + 1]) for n in range(len(parts))):
            if name not in sys.modules and find_spec(name) is None:
                stand_in = ModuleType(name)
                stand_in.__dict__.update({"__getattr__": lambda _: StandIn, "__path__": []})
                sys.modules[name] = stand_in
