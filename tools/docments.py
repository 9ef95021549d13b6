"""The comment beside each parameter, for smalldocs. fastcore, which reads them, passes over `**fields` and parameters
before a `/`, and takes the comment of `**fields` for one on what is returned; here every parameter has its own."""
import ast
import dataclasses
import inspect
import io
import sys
import textwrap
import tokenize
from importlib.util import find_spec
from types import ModuleType
from typing import Any

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


def docments(symbol: Any,           # a function, method or class
             full: bool = True,     # types and defaults too
             ) -> dict[str, Any]:   # parameter → what fastcore knows of it, with the right comment
    "As fastcore reads them, with the comments that it misses."
    found: dict[str, Any] = fastcore.docments(symbol, full=full)
    function = symbol.__init__ if inspect.isclass(symbol) and not dataclasses.is_dataclass(symbol) else symbol
    if inspect.isfunction(function):
        said = parameter_comments(function)
        for name, entry in found.items():
            entry.docment = said.get(name) or (None if name == "return" else entry.docment)
    return found


def install() -> None:
    "Let smalldocs read parameters with `docments`."
    api.docments = docments


def stand_in_frameworks() -> None:
    "Let modules be imported that inherit from a framework which is not installed: only names are looked at."
    if find_spec("langgraph") is None:
        stand_in = ModuleType("langgraph.store.base")
        stand_in.__dict__.update(dict.fromkeys(
            ("BaseStore", "GetOp", "Item", "ListNamespacesOp", "MatchCondition", "Op", "PutOp", "Result", "SearchItem", "SearchOp",
             "TTLConfig", "get_text_at_path", "tokenize_path", "validate_op_namespace"), object))
        sys.modules |= dict.fromkeys(("langgraph", "langgraph.store", "langgraph.store.base"), stand_in)
    if find_spec("anthropic") is None:
        stand_in = ModuleType("anthropic.lib.tools")
        stand_in.__dict__.update(BetaAbstractMemoryTool=object, ToolError=Exception)
        sys.modules |= dict.fromkeys(("anthropic", "anthropic.lib", "anthropic.lib.tools"), stand_in)
