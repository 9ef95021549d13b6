"""Two pages for people: the explorer, for looking at memories, and `/docs`, the contract. Neither asks another server for anything.

The explorer is `rlm/data/explorer.html`: style, script and all, written by hand, without a build and without a library.
Stored texts reach it as JSON and are put into the page as text. The policy that the browser gets with it allows this
very script and this very style only (by their hashes), and requests to this server only; assigning HTML from a text
is an error (`require-trusted-types-for`).

`/docs` is made from the OpenAPI page, without a script. Viewers of OpenAPI come as megabytes of script, usually from somebody
else's server. What a person looks for is which call there is, what it takes and an example; a page of text has that, and
works where there is no network.
"""

import base64
import hashlib
import html
import json
import re
from collections.abc import Iterator, Mapping
from importlib.resources import files
from typing import Any


def read_page() -> str:
    "Return the page, as HTML."
    return files("rlm").joinpath("data", "explorer.html").read_text(encoding="utf-8")


def _source_hashes(page: str, tag: str) -> str:
    "Return the hashes of what stands in the tags of one kind, as a source list of a policy."
    inside = re.findall(rf"<{tag}>(.*?)</{tag}>", page, re.S)
    return " ".join(f"'sha256-{base64.b64encode(hashlib.sha256(t.encode()).digest()).decode()}'" for t in inside)


def content_security_policy(page: str,  # HTML
                            ) -> str:
    "Return the value of the header Content-Security-Policy that the page is sent with."
    return (f"default-src 'none'; script-src {_source_hashes(page, 'script')}; style-src {_source_hashes(page, 'style')}; "
            "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
            "require-trusted-types-for 'script'; trusted-types 'none'")


STYLE = """
:root { color-scheme: light dark; --line: #8884; --soft: #8882; }
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 62rem; padding: 0 1rem; }
h2 { border-bottom: 1px solid var(--line); margin-top: 2.5rem; } h4 { margin: 1rem 0 .3rem; }
details { border: 1px solid var(--line); border-radius: 6px; margin: .5rem 0; padding: .4rem .8rem; } summary { cursor: pointer; }
code, pre { font: 13px/1.45 ui-monospace, monospace; } pre { background: var(--soft); border-radius: 6px; overflow: auto; padding: .6rem; }
.verb { display: inline-block; font-weight: 700; min-width: 4.2rem; } .old { opacity: .6; } .what { opacity: .8; }
table { border-collapse: collapse; width: 100%; } td, th { border-top: 1px solid var(--line); padding: .25rem .5rem .25rem 0; 
text-align: left; vertical-align: top; }
"""
text = html.escape


def _as_json(value: Any) -> str:
    "Return a value as JSON, escaped for HTML."
    return text(json.dumps(value, ensure_ascii=False), quote=False)


def resolve(schema: Mapping[str, Any],  # schema, perhaps a reference
            page: Mapping[str, Any],    # the OpenAPI page
            ) -> dict[str, Any]:
    "Return a schema itself, where a reference to it is given."
    while "$ref" in schema:
        schema = page["components"]["schemas"][schema["$ref"].rsplit("/", 1)[-1]]
    return dict(schema)


def _type_name(schema: Mapping[str, Any]) -> str:
    "Return the type of a property in a few words."
    if "$ref" in schema:
        return str(schema["$ref"]).rsplit("/", 1)[-1]
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(_type_name(s) for s in schema["anyOf"]))
    if "enum" in schema:
        return " | ".join(map(str, schema["enum"]))
    if "const" in schema:
        return str(schema["const"])
    if schema.get("type") == "array":
        return f"list of {_type_name(schema.get('items', {}))}"
    found = schema.get("type", "anything")
    return " or ".join(found) if isinstance(found, list) else str(found)


def _example_of(schema: Mapping[str, Any], page: Mapping[str, Any]) -> Any:
    "Return an example of a body: the first example of each property that is needed."
    found = resolve(schema, page)
    needed = found.get("required", []) or list(found.get("properties", {}))[:2]
    return {name: (p.get("examples") or [None])[0] for name, p in found.get("properties", {}).items() if name in needed}


def _property_rows(schema: Mapping[str, Any], page: Mapping[str, Any]) -> Iterator[str]:
    "Yield a row of a table for each property."
    found = resolve(schema, page)
    for name, told in found.get("properties", {}).items():
        mark = "" if name in found.get("required", []) else " <span class=what>(optional)</span>"
        example = _as_json(told["examples"][0]) if told.get("examples") else ""
        yield (f"<tr><td><code>{text(name)}</code>{mark}<td>{text(_type_name(told))}<td>{text(told.get('description', ''))}"
               f"<td><code>{example}</code>")


def table(rows: Iterator[str],  # rows of a table
          first: str,           # title of the first column
          ) -> str:
    "Return a table of properties; nothing without a row."
    made = "\n".join(rows)
    return f"<table><tr><th>{first}<th>type<th>what it is<th>example\n{made}</table>" if made else ""


def _parameter_rows(operation: Mapping[str, Any]) -> Iterator[str]:
    "Yield a row of a table for each parameter of the address and each header."
    for told in operation.get("parameters", []):
        schema = told["schema"]
        examples = schema.get("examples") or [told["example"]] if "example" in told or schema.get("examples") else []
        about = told.get("description") or schema.get("description", "")
        yield (f"<tr><td><code>{text(told['name'])}</code> <span class=what>({told['in']})</span><td>{text(_type_name(schema))}"
               f"<td>{text(about)}<td><code>{_as_json(examples[0]) if examples else ''}</code>")


def _operation_html(path: str, method: str, operation: Mapping[str, Any], page: Mapping[str, Any]) -> str:
    "Return a route as HTML that can be folded."
    old = " class=old" if operation.get("deprecated") else ""
    parts = [f"<details id='{text(operation['operationId'])}'><summary{old}><span class=verb>{method.upper()}</span> "
             f"<code>{text(path)}</code> <span class=what>{text(operation.get('description', ''))}</span></summary>",
             table(_parameter_rows(operation), "parameter")]
    for kind, content in operation.get("requestBody", {}).get("content", {}).items():
        made = content.get("example") or json.dumps(_example_of(content["schema"], page), ensure_ascii=False)
        parts += [f"<h4>Body, <code>{text(kind)}</code></h4>", table(_property_rows(content["schema"], page), "field"),
                  f"<pre>{text(made.rstrip(), quote=False)}</pre>"]
    for status, answer in operation["responses"].items():
        if status.startswith("2"):
            for kind, content in answer.get("content", {}).items():
                parts += [f"<h4>Answer {status}, <code>{text(kind)}</code></h4>",
                          table(_property_rows(content.get("schema", {}), page), "field")]
    refused = ", ".join(f"{s} ({text(a['description'])})" for s, a in operation["responses"].items() if not s.startswith("2"))
    return "\n".join([*parts, f"<p class=what>Otherwise: {refused}.</p></details>"])


def docs_page(page: Mapping[str, Any],  # the OpenAPI page
              ) -> str:
    "Return the contract as one page of HTML."
    by_tag: dict[str, list[str]] = {tag["name"]: [] for tag in page["tags"]}
    for path, methods in page["paths"].items():
        for method, operation in methods.items():
            by_tag[operation["tags"][0]].append(_operation_html(path, method, operation, page))
    about = {tag["name"]: tag["description"] for tag in page["tags"]}
    title = f"{page['info']['title']} {page['info']['version']}"
    chapters = [f"<h2>{text(tag)}</h2><p>{text(about[tag])}</p>\n" + "\n".join(found) for tag, found in by_tag.items() if found]
    return "\n".join(["<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'>",
                      f"<title>{text(title)}</title><style>{STYLE}</style>", f"<h1>{text(title)}</h1>",
                      f"<p>{text(page['info'].get('summary', ''))}. {text(page['info'].get('description', ''))}</p>",
                      "<p>For programs: <a href=openapi.json>openapi.json</a>. For people: <a href=./>the explorer</a>.</p>",
                      *chapters, "</html>"])


def docs_policy(page: str,  # HTML
                ) -> str:
    "Return the value of the header Content-Security-Policy that the page is sent with: its style, and nothing else."
    return f"default-src 'none'; style-src {_source_hashes(page, 'style')}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
