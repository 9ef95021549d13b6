"""Where a link leads. Notebooks and Markdown pages link as the repository lies, so that a link works in Jupyter and on
the forge; README and the docs site lie elsewhere, and their builders move each link with these functions."""
import posixpath
import re
from collections.abc import Callable

LINK = re.compile(r"(!?\[(?:[^\[\]]|\[[^\]]*\])*\]\()([^()\s]+)((?:\s+\"[^\"]*\")?\))")
CODE = re.compile(r"^```.*?^```[^\n]*$|`[^`\n]+`", re.DOTALL | re.MULTILINE)
OUTSIDE = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*:|//|#|/")


def relink(text: str,                   # Markdown
           move: Callable[[str], str],  # from the link as written to the link wanted
           ) -> str:                    # the same text with its relative links moved
    "Move every relative link and image of a Markdown text; code, web addresses and anchors stay as they are."
    def moved(found: re.Match[str]) -> str:
        target = found[2] if OUTSIDE.match(found[2]) else move(found[2])
        return f"{found[1]}{target}{found[3]}"

    codes = CODE.findall(text)
    numbers = iter(range(len(codes)))
    masked = CODE.sub(lambda _: f"\0{next(numbers)}\0", text)
    return re.sub("\0(\\d+)\0", lambda mask: codes[int(mask[1])], LINK.sub(moved, masked))


def from_root(link: str,    # as written in a page
              folder: str,  # the page's folder, from the project's root; empty for the root
              ) -> str:     # the same target as a path from the project's root
    "Where a page's relative link leads, seen from the project's root."
    return posixpath.normpath(posixpath.join(folder, link)) + ("/" if link.endswith("/") else "")
