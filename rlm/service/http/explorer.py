"""The explorer: a page for looking at memories, in one file that asks no other server.

The page is `rlm/data/explorer.html`: style, script and all, written by hand, without a build and without a library.
Stored texts reach it as JSON and are put into the page as text. The policy that the browser gets with it allows this
very script and this very style only (by their hashes), and requests to this server only; assigning HTML from a text
is an error (`require-trusted-types-for`).
"""

import base64
import hashlib
import re
from importlib.resources import files


def read_page() -> str:
    "Return the page, as HTML."
    return files("rlm").joinpath("data", "explorer.html").read_text(encoding="utf-8")


def source_hashes(page: str,  # HTML
                  tag: str,   # script or style
                  ) -> str:
    "Return the hashes of what stands in the tags of one kind, as a source list of a policy."
    inside = re.findall(rf"<{tag}>(.*?)</{tag}>", page, re.S)
    return " ".join(f"'sha256-{base64.b64encode(hashlib.sha256(t.encode()).digest()).decode()}'" for t in inside)


def content_security_policy(page: str,  # HTML
                            ) -> str:
    "Return the value of the header Content-Security-Policy that the page is sent with."
    return (f"default-src 'none'; script-src {source_hashes(page, 'script')}; style-src {source_hashes(page, 'style')}; "
            "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
            "require-trusted-types-for 'script'; trusted-types 'none'")
