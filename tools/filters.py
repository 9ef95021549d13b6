"""What a notebook becomes on its way to the site: nbdev's filters, with our own in place of some of theirs.

A reader of the site sees the documentation of each name in the order of the notebook, and below it, folded, the code
that a notebook exports: the prose speaks of that code, helpers without a documented name included."""
import ast
import contextlib
import functools
import importlib
import inspect
import itertools
import json
import re
import textwrap
from pathlib import Path
from typing import Any

from execnb.nbio import read_nb
from fastcore import docments
from nbdev import processors, showdoc
from nbdev.config import get_config
from nbdev.doclinks import NbdevLookup

EXPORTS = {"export", "exporti", "exports"}
HIDDEN = {"hide", "default_exp"}


def exports(cell: Any,  # a cell with its directives read
            ) -> bool:  # whether it goes into the package
    "Tell a cell whose code is exported."
    return cell.cell_type == "code" and bool(EXPORTS & (cell.directives_ or {}).keys())


def imports_only(cell: Any,  # a code cell
                 ) -> bool:  # whether it does nothing but import
    "Tell a cell of import lines, which says nothing to a reader of the site."
    return all(isinstance(node, ast.Import | ast.ImportFrom) for node in cell.parsed_() or [])


def commands(cell: Any,       # a code cell
             ) -> set[str]:  # names of functions
    "The functions that a cell makes into commands of the command line, whose help says more than their signature."
    functions = [node for node in cell.parsed_() or [] if isinstance(node, ast.FunctionDef)]
    return {f.name for f in functions for made in f.decorator_list
            if isinstance(made, ast.Call) and getattr(made.func, "attr", "") in ("command", "group")}


class DocsInOrder(processors.add_show_docs):  # type: ignore[misc]
    "Document the names of one cell in the order of the cell, where nbdev's own filter turns it round; but no commands."

    def begin(self) -> None:
        "Turn each run of added cells back."
        super().begin()
        left_out = {f"show_doc({name})" for cell in self.nb.cells if exports(cell) for name in commands(cell)}
        self.nb.cells = [c for c in self.nb.cells if not (getattr(c, "has_sd", False) and c.source in left_out)]
        runs = itertools.groupby(self.nb.cells, key=lambda cell: bool(getattr(cell, "has_sd", False)))
        self.nb.cells = [cell for added, run in runs for cell in (reversed(list(run)) if added else run)]


def typing_imports(cell: Any,          # a code cell
                   ) -> list[ast.stmt]:  # its import statements
    "What a cell imports for its annotations alone; documenting resolves them."
    return [inner for node in cell.parsed_() or [] if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
            for inner in node.body]


def signature_now(thing: Any,        # object to document
                  *args: Any,        # as `inspect.signature` takes them
                  **kwargs: Any,     # the same
                  ) -> inspect.Signature:
    "The signature, its annotations as they are written where they name what a later cell defines."
    try:
        return inspect.signature(thing, *args, **kwargs)
    except NameError:
        return inspect.signature(thing, *args, **kwargs | {"eval_str": False})


docments.signature = signature_now
docments._ital_first = str  # a docstring stands upright: one that emphasizes a word would end its own italics there


def head(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef,  # a definition
         lines: list[str],  # all lines of its source
         ) -> list[str]:    # lines before its body, or the line that holds both
    "The lines that open a definition, without its decorators and without words to a type checker."
    return [line.partition("  # type:")[0] for line in lines[node.lineno - 1:max(node.body[0].lineno - 1, node.lineno)]]


def signature_as_written(source: str,  # source text of a function or a class, without indentation
                         ) -> str:     # lines of Python
    "A function's opening lines with the comment beside each parameter; a class's, with its fields or with how an object is made."
    node, lines = ast.parse(source).body[0], source.splitlines()
    if not isinstance(node, ast.ClassDef):
        return "\n".join(head(node, lines)) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) else ""
    fields = [part for part in node.body if isinstance(part, ast.AnnAssign)]
    made = next((part for part in node.body if isinstance(part, ast.FunctionDef) and part.name == "__init__"), None)
    inside = [line for field in fields for line in lines[field.lineno - 1:field.end_lineno]]
    return "\n".join(head(node, lines) + (inside if made is None else head(made, lines)))


class AsWritten(showdoc.BasicMarkdownRenderer):  # type: ignore[misc]
    """Show a function or class of the package as its source writes it: `class Anchor:` with its fields, annotations by their short
    names, and a compiled loop as the function it was made from."""

    def _repr_markdown_(self) -> str:
        shown: str = super()._repr_markdown_()
        with contextlib.suppress(OSError, TypeError, SyntaxError):  # what has no source
            written: Any = getattr(self.sym, "body", self.sym)
            code = signature_as_written(textwrap.dedent(inspect.getsource(inspect.unwrap(written))))
            if code:
                return re.sub(r"```python\n.*?\n```", lambda _: f"```python\n{code}\n```", shown, count=1, flags=re.DOTALL)
        return shown


showdoc.BasicMarkdownRenderer = AsWritten


class ImportsAndExports(processors.exec_show_docs):  # type: ignore[misc]
    "Execute what documenting needs: exported cells, and the import lines, but no other line, of the rest."

    def begin(self) -> None:
        "Execute cells as parts of their module, so that what they make knows its source, and is not named `__main__`."
        super().begin()
        named = [cell.directives_["default_exp"][0] for cell in self.nb.cells if "default_exp" in (cell.directives_ or {})]
        if named and hasattr(self, "k"):
            self.k.user_ns["__name__"] = importlib.import_module(f"{get_config().lib_name}.{named[0]}").__name__

    def __call__(self, cell: Any) -> None:
        "Execute one cell, or its imports."
        if cell.cell_type != "code" or exports(cell) or "show_doc(" in cell.source:
            super().__call__(cell)
            self.k.run_cell("\n".join(ast.unparse(n) for n in typing_imports(cell)))
            return
        imports = [ast.unparse(n) for n in cell.parsed_() or [] if isinstance(n, ast.Import | ast.ImportFrom)]
        self.k.run_cell("\n".join(imports))


class FoldedSource(processors.Processor):  # type: ignore[misc]
    "Show exported code folded, below the documentation of its names; leave hidden cells out."

    def begin(self) -> None:
        "Move each exported cell behind the documentation that follows it, and make one of those that stand together."
        placed: list[Any] = []
        for cell in self.nb.cells:
            behind = len(placed)
            while getattr(cell, "has_sd", False) and behind and exports(placed[behind - 1]):
                behind -= 1
            placed.insert(behind, cell)
        self.nb.cells = []
        for cell in placed:  # neighbours share a fold
            before = self.nb.cells[-1] if self.nb.cells else None
            if before is not None and all(exports(c) and not imports_only(c) and not HIDDEN & c.directives_.keys() for c in (before, cell)):
                before.source += f"\n\n\n{cell.source}"
            else:
                self.nb.cells.append(cell)

    def cell(self,
             cell: Any,  # a cell with its directives read
             ) -> None:
        "Fold a cell, or take it out when it is hidden or only imports."
        said = (cell.directives_ or {}).keys()
        if HIDDEN & said or (exports(cell) and imports_only(cell)):
            del cell["source"]
        elif exports(cell):
            cell.source = f"#| code-fold: true\n#| code-summary: Source\n{cell.source}"


@functools.cache
def public_names() -> frozenset[str]:
    "The names of the package that the site documents: those that modules list in `__all__`."
    listed = (re.search(r"^__all__ = (\[.*?\])", path.read_text(encoding="utf-8"), re.M | re.S) for path in Path("rlm").rglob("*.py"))
    return frozenset(name for found in listed if found for name in ast.literal_eval(found[1]))


def linked(text: str,  # Markdown
           ) -> str:   # the same with links
    "Link the names in backticks that a chapter documents; methods are left to the API reference, helpers and commands to themselves."
    def kept(found: re.Match[str]) -> str:
        page, anchor = found[2], found[3]
        name = found[1].strip("`").partition("(")[0].rpartition(".")[2]
        return found[1] if name not in public_names() or "." in anchor or page.endswith("_cli.html") else found[0]

    site = re.escape(f"{get_config().doc_host}{get_config().doc_baseurl}/")
    made = rf"\[(`[^`]+`)\]\({site}([^)#]*)#([^)]*)\)"
    found = re.sub(made, kept, NbdevLookup().linkify(text) or "")
    inside_another = rf"\[((?:[^\[\]]*{made})+[^\[\]]*)\]\("
    return re.sub(inside_another, lambda outer: "[" + re.sub(made, r"\1", outer[1]) + "](", found)


def add_links(cell: Any,  # a cell
              ) -> None:
    "Link the names in backticks to their documentation, in text and in documentation, but not inside code."
    if cell.cell_type == "markdown":
        cell.source = linked(cell.source)
    for data in (output.get("data", {}) for output in cell.get("outputs", [])):
        if "text/markdown" in data:
            data["text/markdown"] = linked("".join(data["text/markdown"]))


FIGURE_ALT = re.compile(r"^#\| *fig-alt: *(.+)\n", re.MULTILINE)


def alt_text(source: str,  # a cell that draws
             ) -> str:     # empty where nothing is told
    "What a figure shows, for those who don't see it: the cell's `fig-alt`, or else the titles that it gives."
    if (given := FIGURE_ALT.search(source)) is not None:
        return given[1].strip("'\" ")
    calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    named = {"set_title": 0, "suptitle": 0, "title": 0, "bars": 2}
    shown = [c.args[at] for c in calls if (at := named.get(getattr(c.func, "attr", getattr(c.func, "id", "")), 9)) < len(c.args)]
    shown += [k.value for c in calls for k in c.keywords if k.arg == "title"]
    plain = [node.value for node in sorted(shown, key=lambda node: node.lineno) if isinstance(node, ast.Constant)]
    filled = ["".join(str(p.value) if isinstance(p, ast.Constant) else "…" for p in node.values)
              for node in shown if isinstance(node, ast.JoinedStr)]
    return "; ".join(map(str, plain or filled))


def add_alt(cell: Any,  # a cell
            ) -> None:
    "Tell what each figure of a cell shows, quoted, since a colon in it would end the value."
    if cell.cell_type == "code" and any("image/png" in output.get("data", {}) for output in cell.get("outputs", [])) \
            and (text := alt_text(cell.source)):
        cell.source = f"#| fig-alt: {json.dumps(text, ensure_ascii=False)}\n" + FIGURE_ALT.sub("", cell.source)


class Filters(processors.FilterDefaults):  # type: ignore[misc]
    "nbdev's filters, with ours in place of those they improve on."

    def base_procs(self) -> list[Any]:  # filters in order
        "The filters, in order."
        ours = {processors.add_show_docs: DocsInOrder, processors.exec_show_docs: ImportsAndExports,
                processors.rm_export: FoldedSource, processors.add_links: add_links}
        without = (processors.hide_, processors.add_fold, processors.mv_exports)  # FoldedSource does their work
        return [ours.get(p, p) for p in super().base_procs() if p not in without]


def processed(notebook: Path,  # a notebook
              ) -> Any:        # its cells as a reader of the site wants them
    "Run the filters over a notebook: documentation of its names, links, folded source, hidden cells."
    cells = read_nb(notebook)
    Filters()(cells)
    for cell in cells.cells:
        add_alt(cell)
    return cells
