"""Scripts that a page would load from another host, served from the site instead: KaTeX for formulas, Mermaid for
diagrams. They come from the npm registry by `npm pack`, once, into a cache folder; without npm the pages do without."""
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from npm import fetch

# What a browser would fetch by itself: assets, style sheets, fonts, modules. Links that a reader clicks are not meant.
FETCHED = re.compile(
    r"""<(?:script|img|iframe|source|video|audio|embed|object)\b[^>]*?\b(?:src|data|srcset)\s*=\s*["']?(?:https?:)?//
    |<link\b(?=[^>]*\brel=["']?(?:stylesheet|icon|shortcut|preload|preconnect|modulepreload|manifest))[^>]*?\bhref\s*=\s*["']?(?:https?:)?//
    |@import\s+(?:url\()?\s*["']?(?:https?:)?//
    |url\(\s*["']?(?:https?:)?//
    |\bfrom\s*["'](?:https?:)?//
    |\bimport\s*\(?\s*["'](?:https?:)?//
    |\bfetch\(\s*["'](?:https?:)?//""", re.VERBOSE | re.IGNORECASE)
# A theme's web fonts: the reader's own will do. Their address may hold semicolons.
FONTS = re.compile(r"""@import\s+(?:url\(\s*(?:"[^"]*"|'[^']*'|[^)]*)\s*\)|"[^"]*"|'[^']*')[^;{}]*;""")


@dataclass(frozen=True)
class Script:
    "A script of an npm package, and what of it a page needs."

    name: str               # the npm package, and the folder of the site it goes to
    version: str            # exact
    address: str            # where a page would load it from
    keep: tuple[str, ...]   # globs below the package's `dist` folder
    tags: re.Pattern[str]   # the elements of a page that load it, taken out where it can't be had


KATEX = Script("katex", "0.16.11", "https://cdn.jsdelivr.net/npm/katex@0.16.11/dist",
               ("katex.min.css", "katex.min.js", "contrib/auto-render.min.js", "fonts/*.woff2"),
               re.compile(r"<(link|script)\b[^>]*katex@[^>]*>(?:\s*</script>)?"))
MERMAID = Script("mermaid", "11.4.1", "https://cdn.jsdelivr.net/npm/mermaid@11.4.1/dist",
                 ("mermaid.esm.min.mjs", "chunks/mermaid.esm.min/*.mjs"),
                 re.compile(r"<script\b[^>]*>import mermaid from[^<]*</script>"))


def cached(script: Script,  # what is wanted
           cache: Path,     # the folder that keeps it between builds
           ) -> Path | None:  # its `dist` folder; None when it can't be had
    "The unpacked package, fetched with npm when it is not in the cache."
    home = cache / f"{script.name}-{script.version}"
    if not (home / "package" / "dist").is_dir() and not _fetch(script, home):
        return None
    return home / "package" / "dist"


def _fetch(script: Script,  # what to fetch
           home: Path,      # where to unpack it
           ) -> bool:       # whether it worked
    "Fetch a package; say why when that fails."
    if why := fetch(script.name, script.version, home):
        print(f"The pages show the source of what {script.name} would draw: {why}.")
        return False
    return True


def vendor(site: Path,   # the built site
           cache: Path,  # the folder that keeps packages between builds
           ) -> None:
    "Serve from the site itself every script that its pages ask another host for."
    files = [f for f in site.rglob("*") if f.suffix in (".html", ".css")]
    for file in files:
        _rewrite(file, FONTS.sub("", file.read_text(encoding="utf-8")))
    for script in (KATEX, MERMAID):
        users = [f for f in files if script.address in f.read_text(encoding="utf-8")]
        if not users:
            print(f"No page needs {script.name}.")
            continue
        dist = cached(script, cache)
        for pattern in script.keep if dist else ():
            for found in sorted(dist.glob(pattern)) if dist else ():
                target = site / "site_libs" / script.name / found.relative_to(dist or found)
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(found, target)
        for page in users:
            _localise(page, script, site, dist is not None)


def _localise(page: Path,      # a page that asks for the script
              script: Script,  # which
              site: Path,      # the built site
              have: bool,      # whether the site has a copy now
              ) -> None:
    "Point a page at the site's own copy, or take the request out."
    text = page.read_text(encoding="utf-8")
    up = "../" * len(page.relative_to(site).parent.parts) or "./"
    _rewrite(page, text.replace(script.address, f"{up}site_libs/{script.name}") if have else script.tags.sub("", text))


def _rewrite(file: Path,  # a file of the site
             text: str,   # what it shall hold
             ) -> None:
    "Write a file when its text has changed."
    if text != file.read_text(encoding="utf-8"):
        file.write_text(text, encoding="utf-8")


def outside_requests(site: Path,     # a built site
                     ) -> list[str]:  # one line for each: the file and the request
    "Everything that a page of the site would fetch from another host."
    found = []
    for file in sorted(f for f in site.rglob("*") if f.suffix in (".html", ".css")):
        text = file.read_text(encoding="utf-8")
        found += [f"{file.relative_to(site)}: {text[m.start():m.end() + 60]!r}" for m in FETCHED.finditer(text)]
    return found
