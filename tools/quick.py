"""What a build of the site asks again and again, worked out once. No source changes while it runs, so nothing is stale.

Without this, smalldocs writes the API reference a second time, gathers the paths of all pages for every entry of every
sidebar, and `inspect` parses a whole module each time that somebody asks where one of its classes begins."""
import ast
import inspect
import posixpath
from collections.abc import Callable
from functools import lru_cache
from pathlib import PurePosixPath
from types import SimpleNamespace
from typing import Any

from fastcore.xml import Safe, to_xml
from smalldocs import api, highlight, layout, site


def remembered(act: Callable[[Any], Any],  # function of anything
               ) -> Callable[[Any], Any]:
    "The same function, which asks once about each thing. An error is not remembered."
    known: dict[int, tuple[Any, Any]] = {}  # id → the thing itself, so that the id stays its own, and the answer

    def asked(thing: Any) -> Any:
        if id(thing) not in known:
            known[id(thing)] = thing, act(thing)
        return known[id(thing)][1]
    return asked


def paths(of: site.Site,   # its pages are known
          ) -> set[str]:   # paths of its pages, from its root
    "Where the pages of a site go."
    found: set[str] = of.__dict__.setdefault("_paths", set())
    if len(found) != len(of.pages):
        found |= {str(p.out) for p in of.pages.values()}
    return found


_HREF, _SIDE_ITEM = layout.Layout.href, layout.Layout.side_item


def href(self: layout.Layout,  # layout of a page
         item_href: str,       # an entry's link: an output path, or a link from the config
         ) -> str:             # the link from this page
    "As smalldocs writes it."
    return str(site.rel(PurePosixPath(item_href), self.page) if item_href in paths(self.site) else _HREF(self, item_href))


def side_item(self: layout.Layout,  # layout of a page
              it: layout.Item,      # an entry of its sidebar
              depth: int,           # how deep it stands
              ) -> Any:             # the entry
    "As smalldocs makes it; an entry for a page is the same on all other pages of a folder."
    if it.section or it.sep or it.page is None or it.page is self.page:
        return _SIDE_ITEM(self, it, depth)
    made: dict[tuple[int, str], Safe] = self.site.__dict__.setdefault("_entries", {})
    key = id(it), posixpath.dirname(str(self.page.out))
    if key not in made:
        made[key] = Safe(to_xml(_SIDE_ITEM(self, it, depth), indent=False))
    return made[key]


def install() -> None:
    "Let smalldocs and `inspect` remember; smalldocs does not write the API reference by itself any more."
    inspect.ast = SimpleNamespace(**vars(ast) | {"parse": lru_cache(4)(ast.parse)})  # type: ignore[attr-defined]
    inspect.getsourcelines = remembered(inspect.getsourcelines)  # type: ignore[assignment]
    highlight.css_class = lru_cache(100_000)(highlight.css_class)
    layout.Layout.href, layout.Layout.side_item = href, side_item
    api.build_from_config = lambda _project: []
