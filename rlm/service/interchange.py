"""Memories in forms that other programs and people read: Portable AI Memory, a JSON format with a published schema, and Markdown.

Both hold what was said and what is known (memories of kind `block`) of one namespace, as it is now. Rules, strategies, history and the rest
are in the JSON Lines of `rlm db export`, which nothing is lost in.
"""

import re
from collections.abc import Generator, Iterator, Mapping
from datetime import tzinfo
from hashlib import sha256
from typing import Any

from rlm.core.clock import in_zone, to_iso
from rlm.core.errors import InvalidInput
from rlm.core.text.normal_form import normal_form
from rlm.service.memory import Memory
from rlm.store.records import MemoryRecord, dump_json

PAM, PAM_VERSION, PAM_SPEC = "portable-ai-memory", "1.0", "https://portable-ai-memory.org/spec/v1.0"
PAM_TYPES = ("fact", "preference", "skill", "context", "relationship", "goal", "instruction", "identity", "environment", "project")
PAM_RELATIONS = ("supports", "contradicts", "extends", "supersedes", "related_to", "derived_from")
OWN = ("title", "summary", "category", "source_type", "session", "turn", "speaker", "role", "reply_to", "confidence", "scope", "extra")
CHUNK = 500  # memories that are read at once


def content_hash(text: str,  # words of a memory
                 ) -> str:
    "Return the digest by which Portable AI Memory tells contents apart: white space, letter case and Unicode form do not count."
    plain = re.sub(r"\s+", " ", normal_form("NFC", text.strip().lower()))
    return f"sha256:{sha256(plain.encode()).hexdigest()}"


def _current_blocks(memory: Memory) -> Iterator[list[MemoryRecord]]:
    "Yield what was said or is known in a namespace, in the order in which it was stored, `CHUNK` memories at a time."
    storage, namespace = memory.backend, memory.ctx.namespace
    seqs = storage.memories.seqs(namespace)
    for at in range(0, len(seqs), CHUNK):
        found = storage.memories.records(seqs[at:at + CHUNK])
        yield [found[seq] for seq in sorted(found) if found[seq].kind == "block"]


def _platform_of(record: MemoryRecord) -> str:
    "Return the program that a memory came from, as an identifier of Portable AI Memory."
    name = re.sub(r"[^a-z0-9_-]+", "-", str(record.provenance.get("source", "rlm")).lower()).strip("-")[:32]
    return name if len(name) > 1 else "rlm"


def _pam_memory(record: MemoryRecord, links: list[dict[str, Any]]) -> dict[str, Any]:
    "Return a memory as Portable AI Memory has it; what that format has no place for stands in `metadata.rlm`."
    kind = record.category if record.category in PAM_TYPES else "context" if record.session else "custom"
    own = {name: value for name in OWN if (value := getattr(record, name)) not in (None, "", (), {})}
    own |= {"provenance": dict(record.provenance)} if record.provenance else {}
    own |= {"pinned": True} if record.pinned else {}
    own |= {"tags": list(record.tags)} if record.tags else {}
    own |= {"links": links} if links else {}
    tags = sorted({t for tag in record.tags if re.fullmatch(r"[a-z0-9][a-z0-9_-]*", t := tag.lower())})
    when = {"created_at": to_iso(record.created_at), "updated_at": to_iso(record.updated_at), "valid_from": to_iso(record.valid_from),
            "valid_until": None if record.valid_to is None else to_iso(record.valid_to)}
    said = {"conversation_ref": record.session, "message_ref": record.id} if record.session else {}
    return {"id": record.id, "type": kind, "custom_type": (record.category or "memory") if kind == "custom" else None,
            "status": "archived" if record.status == "archived" else "active", "content": record.text,
            "content_hash": content_hash(record.text), "summary": record.summary, "tags": tags, "temporal": when,
            "provenance": {"platform": _platform_of(record), **said}, "metadata": {"rlm": own}}


def _links_of(memory: Memory, records: list[MemoryRecord]) -> dict[str, list[dict[str, Any]]]:
    "Return the links that people and programs have made, by the memory they start from; those of the graph are made again from the words."
    found, here = dict[str, list[dict[str, Any]]](), {r.id for r in records}
    for edge in memory.backend.edges(sorted(here), memory.ctx.namespace):
        if edge.origin == "user" and edge.src in here:
            found.setdefault(edge.src, []).append({"target": edge.dst, "relation": edge.relation, "weight": edge.weight})
    return found


def pam_lines(memory: Memory) -> Generator[str, None, None]:
    "Yield a namespace as one document of Portable AI Memory 1.0, a memory a line, all of one moment."
    from rlm import __version__
    now, ids, relations, talks, mark = to_iso(memory.clock.now()), set[str](), list[dict[str, Any]](), dict[str, dict[str, Any]](), ""
    head = {"schema": PAM, "schema_version": PAM_VERSION, "spec_uri": PAM_SPEC, "exported_by": f"rlm/{__version__}", "export_date": now,
            "owner": {"id": memory.ctx.namespace}, "export_type": "full"}
    with memory.backend.snapshot():
        yield dump_json(head)[:-1] + ', "memories": ['
        for records in _current_blocks(memory):
            links = _links_of(memory, records)
            for record in records:
                one = _pam_memory(record, links.get(record.id, []))
                ids.add(record.id)
                relations += [{"id": f"{record.id}-{n}", "from": record.id, "to": link["target"],
                               "type": link["relation"] if link["relation"] in PAM_RELATIONS else "related_to",  # the nearest to its own
                               "confidence": link["weight"], "created_at": now} for n, link in enumerate(links.get(record.id, []))]
                if record.session is not None:
                    talk = talks.setdefault(record.session, {"id": record.session, "platform": _platform_of(record), "message_count": 0,
                                                             "temporal": {"created_at": to_iso(record.valid_from)}})
                    talk["message_count"] += 1
                yield mark + dump_json(one)
                mark = ","
    between = [r for r in relations if r["to"] in ids]
    yield f'], "relations": {dump_json(between)}, "conversations_index": {dump_json(list(talks.values()))}}}'


def _pam_fields(given: Mapping[str, Any], later: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    "Return the fields of a memory that is read from Portable AI Memory; of its trust nothing is taken over."
    own = given.get("metadata", {}).get("rlm") or {}
    when, kind = given["temporal"], given.get("custom_type") or given["type"]
    until = when.get("valid_until")
    if until is None and given.get("status") in ("superseded", "archived", "deprecated"):
        then = later.get(str(when.get("superseded_by")), {}).get("temporal", {})
        until = then.get("valid_from") or then.get("created_at") or (when.get("updated_at") if given["status"] == "superseded" else None)
    fields = {"text": given["content"], "summary": given.get("summary"), "tags": own.get("tags", given.get("tags") or []),
              "valid_from": when.get("valid_from") or when["created_at"], "valid_to": until,
              "session": given["provenance"].get("conversation_ref")}
    fields |= {"category": kind} if not own else {}
    fields |= {name: own[name] for name in (*OWN, "pinned") if name in own}
    source = {k: v for k, v in (own.get("provenance") or {}).items() if k not in ("trust", "actor")}
    fields["provenance"] = source or {"source": given["provenance"]["platform"]}
    return {name: value for name, value in fields.items() if value is not None}


def read_pam(document: Mapping[str, Any],  # a document of Portable AI Memory
             ) -> Iterator[tuple[str, dict[str, Any], list[dict[str, Any]]]]:
    """Yield the id, fields and links of each memory that was not retracted. Raises `InvalidInput` for another version, or a text that does
    not agree with its digest. Ids of our own documents stay; others begin with `pam-`."""
    if document.get("schema") != PAM or not str(document.get("schema_version", "")).startswith("1."):
        raise InvalidInput("That is no document of Portable AI Memory 1.", f"Its schema is {PAM!r}, and its schema_version '1.0'.")
    given, ours = document["memories"], str(document.get("exported_by", "")).startswith("rlm/")
    for one in given:
        if one["content_hash"] != content_hash(one["content"]):
            raise InvalidInput(f"The memory {one['id']!r} does not agree with its digest.", "The file is damaged, or was edited.")
    by_id = {str(one["id"]): one for one in given}
    names = {id: id if ours else f"pam-{id}" for id in by_id}
    related = dict[str, list[dict[str, Any]]]()
    for r in () if ours else document.get("relations") or ():
        weight = 1.0 if r.get("confidence") is None else r["confidence"]
        related.setdefault(str(r["from"]), []).append({"target": names.get(str(r["to"]), ""), "relation": r["type"], "weight": weight})
    for id, one in by_id.items():
        if one.get("status") != "retracted":
            links = (one.get("metadata", {}).get("rlm") or {}).get("links", []) if ours else related.get(id, [])
            yield names[id], _pam_fields(one, by_id), links


def _said_on(record: MemoryRecord, where: tzinfo) -> str:
    "Return a memory as an item of a Markdown list: who, when, what, and what is beside it."
    who, when = record.speaker or record.role, f"{in_zone(record.valid_from, where):%Y-%m-%d}"
    until = f" until {in_zone(record.valid_to, where):%Y-%m-%d}" if record.valid_to is not None else ""
    tags = "".join(f" #{tag.replace(' ', '-')}" for tag in record.tags)
    words = record.text.strip().replace("\n", "\n  ")
    return f"- {f'**{who}:** ' if who else ''}{words}  \n  *{when}{until}{tags}*"


def markdown_lines(memory: Memory) -> Generator[str, None, None]:
    "Yield a namespace as Markdown for people: what is pinned, what is known by month, conversations turn by turn."
    heading, where = "", memory.ctx.where

    def heading_of(title: str, record: MemoryRecord) -> str:
        if title == "Said":
            return str(record.extra.get("title") or record.session)
        return title if title == "Pinned" else f"{title}, {in_zone(record.valid_from, where):%Y-%m}"
    with memory.backend.snapshot():
        yield f"# What is remembered in {memory.ctx.namespace}\n\nWritten {in_zone(memory.clock.now(), where):%Y-%m-%d}."
        for title in ("Pinned", "Known", "Said"):
            for records in _current_blocks(memory):
                for record in (r for r in records if title == ("Pinned" if r.pinned else "Known" if r.session is None else "Said")):
                    if (below := heading_of(title, record)) != heading:
                        heading = below
                        yield f"\n## {heading}\n"
                    yield _said_on(record, where)
