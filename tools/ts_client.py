"""Write the types of the TypeScript client, `clients/ts/types.d.ts`, from the server's OpenAPI page; `--check` only compares."""

import json
import sys
from pathlib import Path
from typing import Any

TARGET = Path(__file__).parents[1] / "clients" / "ts" / "types.d.ts"
WANTED = {  # schema of the OpenAPI page → name of the type
    "MemoryOut": "Memory", "HitOut": "Hit", "SearchOut": "SearchResults", "MemoriesOut": "MemoryPage", "ContextOut": "ContextBlock",
    "StatsOut": "Stats", "WriteBody": "MemoryFields", "PatchBody": "MemoryChanges", "FilterFields": "Filters", "TurnBody": "Turn",
    "RecallOut": "RecallResults", "ConversationPageOut": "ConversationPage", "AppliedOut": "RulesAnswer", "ReviewOut": "Review",
    "RejectionOut": "Rejection", "AuditOut": "Audit", "TimelineItem": "Moment", "PassedOverOut": "PassedOver", "ErasedOut": "Erased",
    "ProblemOut": "Problem"}

TIMES = ("valid_from", "valid_to", "since", "until", "valid_at", "as_of", "time", "created_at")  # fields of requests


def page() -> dict[str, Any]:
    "Return the OpenAPI page of the server."
    from rlm.core.settings import load_settings
    from rlm.service.http.app import application
    from rlm.service.http.routing import Service
    service = Service(load_settings(db_path=":memory:"), embedder="none")
    try:
        found: dict[str, Any] = application(service).openapi()
    finally:
        service.close()
    return found


def ts_type(schema: dict[str, Any],  # JSON schema of a value
            ) -> str:
    "Return a schema as a type of TypeScript; schemas that the client doesn't name are objects."
    if ref := schema.get("$ref"):
        return WANTED.get(ref.rsplit("/", 1)[-1], "Record<string, unknown>")
    if choices := schema.get("anyOf") or schema.get("oneOf"):
        return " | ".join(dict.fromkeys(ts_type(choice) for choice in choices))
    if values := schema.get("enum") or ([schema["const"]] if "const" in schema else None):
        return " | ".join(map(json.dumps, values))
    kind = schema.get("type")
    if isinstance(kind, list):
        return " | ".join(ts_type(schema | {"type": one}) for one in kind)
    if kind == "array":
        return f"Array<{ts_type(schema.get('items', {}))}>"
    if kind == "object":
        inner = schema.get("additionalProperties")
        return f"Record<string, {ts_type(inner) if isinstance(inner, dict) else 'unknown'}>"
    return {"string": "string", "integer": "number", "number": "number", "boolean": "boolean", "null": "null"}.get(str(kind), "unknown")


def interface(name: str,               # name of the type
              schema: dict[str, Any],  # JSON schema of an object
              is_sent: bool = False,   # is it of a request? Its times may be of the class Date
              ) -> str:
    "Return an object's schema as an interface. What the server may leave out is optional."
    required, lines = schema.get("required", ()), list[str]()
    for field, about in schema.get("properties", {}).items():
        said = f"  /** {about['description'].rstrip('.')}. */\n" if about.get("description") else ""
        kind = ts_type(about).replace("string", "string | Date") if is_sent and field in TIMES else ts_type(about)
        lines.append(f"{said}  {field}{'' if field in required else '?'}: {kind};\n")
    head = f"/** {schema.get('description', name).splitlines()[0]} */\nexport "
    if ways := [" & ".join(f"{{ {field}: {ts_type(schema['properties'][field])} }}" for field in way["required"])
                for way in schema.get("oneOf", ())]:  # a field that has two names
        return f"{head}type {name} = ({' | '.join(ways)}) & {{\n{''.join(lines)}}};\n"
    return f"{head}interface {name} {{\n{''.join(lines)}}}\n"


def types(schemas: dict[str, Any],  # component schemas of the OpenAPI page
          ) -> str:
    "Return the file of types."
    made = [interface(name, schemas[schema], schema.endswith(("Body", "Fields"))) for schema, name in WANTED.items()]
    return "// Made from the server's OpenAPI page by tools/ts_client.py; not edited by hand.\n\n" + "\n".join(made)


def main() -> int:
    "Write the file, or compare it."
    made = types(page()["components"]["schemas"])
    if "--check" in sys.argv:
        return 0 if TARGET.read_text(encoding="utf-8") == made else 1
    TARGET.write_text(made, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
