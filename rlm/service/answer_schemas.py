"""What REST and MCP answer, as JSON Schema in files of data: OpenAPI page and list of tools show it, tests hold answers to it."""

import json
import re
from functools import cache
from importlib.resources import files
from typing import Any

import yaml


def read_schemas(file: str,  # name of a file in `rlm/data`
                 ) -> dict[str, Any]:
    "Return what a file of schemas holds."
    found: dict[str, Any] = yaml.load(files("rlm").joinpath("data", file).read_text(encoding="utf-8"),
                                      getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    return found


@cache
def tool_schemas() -> dict[str, dict[str, Any]]:
    "Return what each MCP tool answers, by its name, with the shapes that it refers to."
    found = read_schemas("tool_answers.yaml")
    tools: dict[str, str] = found.pop("tools")
    made = dict[str, dict[str, Any]]()
    for tool, shape in tools.items():
        used, ahead = dict[str, Any](), [shape]
        while ahead:
            for name in re.findall(r'#/\$defs/(\w+)', json.dumps(found[ahead.pop()])):
                if name not in used:
                    used[name] = found[name]
                    ahead.append(name)
        made[tool] = found[shape] | ({"$defs": used} if used else {})
    return made
