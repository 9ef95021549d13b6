"""What the built site needs beside what smalldocs makes: search by the words of links, code that wraps below its own beginning, and
long names that break between their words."""
import html
import json
import posixpath
import re
from pathlib import Path
from urllib.parse import unquote

LINK = re.compile(r'<a\b[^>]*?\shref="([^":]+)"[^>]*>(.*?)</a>', re.DOTALL)
CODE = re.compile(r'(<pre class="sourceCode (?!text)[^>]*><code[^>]*>)(.*?)(</code></pre>)', re.DOTALL)
TOC_NAME = re.compile(r'(<a [^>]*data-scroll-target="[^"]*">)([^<]+)(</a>)')


def add_link_texts(site: Path,  # the built site
                   ) -> None:
    "Add to each entry of the search index, as `also`, the words by which the first pages and the guides link to it: Korean ones, too."
    said: dict[str, set[str]] = {}
    for page in [site / "index.html", *sorted((site / "docs").glob("*.html"))]:
        for link, text in LINK.findall(page.read_text(encoding="utf-8").partition("<main")[2].partition("</main>")[0]):
            path, mark, anchor = unquote(html.unescape(link)).partition("#")
            target = posixpath.normpath(posixpath.join(page.relative_to(site).parent.as_posix(), path)) if path else page.name
            said.setdefault(target + mark + anchor, set()).add(html.unescape(re.sub("<[^>]+>", "", text)).strip())
    index = json.loads((site / "search.json").read_text(encoding="utf-8"))
    for entry in index:
        entry["also"] = " ".join(sorted(said.get(entry["href"], ())))
    (site / "search.json").write_text(json.dumps(index, ensure_ascii=False), encoding="utf-8")


def lines_apart(code: str,  # highlighted code: text and spans
                ) -> str:   # the same, each line in a span of its own that knows its indentation
    "Wrap each line, so that a long one goes on below its own beginning; a span over several lines is closed and opened again."
    made, opened = [], list[str]()
    for line in code.split("\n"):
        before = "".join(opened)
        for tag in re.findall(r"<span[^>]*>|</span>", line):
            opened.append(tag) if tag != "</span>" else opened.pop()
        plain = html.unescape(re.sub("<[^>]+>", "", line))
        made.append(f'<span class="line" style="--i:{len(plain) - len(plain.lstrip())}">{before}{line}{"</span>" * len(opened)}</span>')
    return "\n".join(made)


def finish(site: Path,  # the built site
           ) -> None:
    "Finish the search index and each page."
    add_link_texts(site)
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        text = CODE.sub(lambda found: found[1] + lines_apart(found[2].rstrip("\n")) + found[3], text)
        text = TOC_NAME.sub(lambda found: found[1] + re.sub(r"(?<=[._])(?=\w)", "<wbr>", found[2]) + found[3], text)
        page.write_text(text, encoding="utf-8")
