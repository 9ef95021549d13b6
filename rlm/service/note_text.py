"""Notes in Markdown as words that a person would want to be reminded of: without comments, styles, scripts and pictures, with footnotes
where they are referred to, and with each row of a table as a line that names its columns. Code between fences stays as it is.

A chat with an assistant that was written out in Markdown is told from a note, and divided into its turns.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import groupby
from typing import Any

import yaml

from rlm.core.errors import InvalidInput

from .timestamps import as_time

_FENCE = re.compile(r"\s*(?:[-*+]\s+|\d+[.)]\s+)?(`{3,}|~{3,})(?!.*`)")
_OPENED = re.compile(r"<!--|<(style|script)\b[^<>]*>|(?<!\S)%%", re.IGNORECASE)
_CLOSED = {"<!--": "-->", "%%": "%%"}  # what ends a comment; a style and a script end by their own tag
_PICTURE = re.compile(r"!\[\[[^\]|\[\n]+\.(?:png|jpe?g|gif|webp|svg|bmp|pdf|mp3|mp4|m4a|wav|mov)(?:[#|][^\]]*)?\]\]|<img\b[^<>]*>",
                      re.IGNORECASE)
_EMBEDDED = re.compile(r"!\[([^\]\[\n]*)\]\((?:[^()]|\([^()]*\))*\)")
_FILE_NAME = re.compile(r"[^/\s]+\.\w{2,4}|image|Untitled", re.IGNORECASE)
_WIKI_LINK = re.compile(r"!?\[\[([^\]|\[\n]+)(?:\|([^\]\[\n]*))?\]\]")
_LOCAL_LINK = re.compile(r"(?<!!)\[([^\]\[\n]+)\]\((?![a-z][a-z0-9+.-]*:|#)(?:[^()\s]|\([^()]*\))*\)", re.IGNORECASE)
_FOOTNOTE = re.compile(r"^\[\^([^\]\s]+)\]:[ \t]*(.*(?:\n(?:[ \t]+\S.*|\n(?=[ \t]+\S)))*)\n?", re.MULTILINE)
_REFERENCE = re.compile(r"[ \t]?\[\^([^\]\s]+)\]")
_MARKUP = re.compile(r"</?(?:div|span|p|details|summary|center|font|kbd|sub|sup|u|b|i|em|strong|mark|small|a|aside|figure|iframe)"
                     r"(?:\s+[\w-]+=(?:\"[^\"]*\"|'[^']*'|[^\s\"'<>]+))*\s*/?>", re.IGNORECASE)
_BLOCK_ID = re.compile(r"[ \t]\^[\w-]+$", re.MULTILINE)
_RULE = re.compile(r"\s*\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*\|?\s*")
_TAG = re.compile(r"(?<![^\s(,])#([^\W\d_][\w/-]*)")
_COLOUR = re.compile(r"[0-9a-f]{3}|[0-9a-f]{6}|[0-9a-f]{8}", re.IGNORECASE)
_FRONT = re.compile(r"\A---[ \t]*\n(.*?)\n(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL)
_PROPERTY = re.compile(r"([^\W\d][\w .-]{0,40}):(?:[ \t]+(.*))?")


def front_matter(text: str,  # a note
                 ) -> tuple[dict[str, Any], str]:
    "Return what stands between lines of three dashes above a note, and the rest; where that is no list of names and values, it is text."
    if not (m := _FRONT.match(text)):
        return {}, text
    found = _value(m[1])
    if isinstance(found, str):  # such as a title with a colon
        lines = [_PROPERTY.fullmatch(line) for line in m[1].splitlines() if line.strip() and not line.lstrip().startswith("#")]
        found = {p[1]: _value(p[2]) if (p[2] or "").startswith(("[", '"', "'")) else p[2] for p in lines if p} if all(lines) else None
    if not isinstance(found, Mapping) and m[1].strip():
        return {}, text
    return {str(name): value for name, value in (found or {}).items()}, text[m.end():]


def _value(text: str) -> Any:
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError:
        return text


def line_kinds(lines: Sequence[str],  # lines of a note
               ) -> list[str]:        # kind of each line: text, code or hidden
    """Return which lines are text, which are code between fences, and which stand within a comment, a style or a script that began above;
    one that has no end is none."""
    found, fence, until = list[str](), "", ""
    ends = (*_CLOSED.values(), "</style", "</script")
    last = {end: max((n for n, line in enumerate(lines) if end in line.lower()), default=-1) for end in ends}
    for n, line in enumerate(lines):
        if fence:
            found.append("code")
            if (stripped := line.strip()) and not stripped.strip(fence[0]) and len(stripped) >= len(fence):
                fence = ""
        elif until:
            found.append("hidden")
            until = "" if until in line.lower() else until
        elif m := _FENCE.match(line):
            found.append("code")
            fence = m[1]
        else:
            found.append("text")
            for m in _OPENED.finditer(line):
                end = _end_of(m)
                until = "" if last[end] <= n or end in line[m.end():].lower() else end
    return found


def _end_of(opened: "re.Match[str]") -> str:
    return _CLOSED.get(opened[0]) or f"</{opened[1].lower()}"


def _without_hidden(text: str) -> str:
    "A text without comments, styles and scripts; what has no end is text."
    parts, at, low, absent = list[str](), 0, text.lower(), set[str]()
    for m in _OPENED.finditer(text):
        if m.start() < at or (end := _end_of(m)) in absent:
            continue
        if (close := low.find(end, m.end())) < 0 or (after := low.find(">", close) if end[0] == "<" else close + len(end) - 1) < 0:
            absent.add(end)
            continue
        parts.append(text[at:m.start()])
        at = after + 1
    return "".join([*parts, text[at:]])


def footnotes(text: str,  # a note
              ) -> dict[str, str]:
    "Return the footnotes of a note by their marks."
    return {m[1]: " ".join(m[2].split()) for m in _FOOTNOTE.finditer(text)}


def note_tags(text: str,  # a part of a note
              ) -> list[str]:
    "Return the tags that stand in the text, such as `#boat`."
    lines = text.split("\n")
    plain = "\n".join(line for line, kind in zip(lines, line_kinds(lines), strict=True) if kind == "text")
    return list(dict.fromkeys(tag for tag in _TAG.findall(re.sub(r"`[^`]*`", "", plain)) if not _COLOUR.fullmatch(tag)))


def note_words(text: str,  # a part of a note
               notes: Mapping[str, str],  # footnotes by their marks
               ) -> str:   # empty: it says nothing
    "Return what a part of a note says."
    lines = text.split("\n")
    parts = list[str]()
    for is_code, run in groupby(zip(lines, line_kinds(lines), strict=True), key=lambda told: told[1] == "code"):
        words = "\n".join(line for line, _ in run)
        parts.append(words if is_code else _plain(words, notes))
    return re.sub(r"\n{3,}", "\n\n", "\n".join(parts)).strip()


def _plain(text: str, notes: Mapping[str, str]) -> str:
    text = _FOOTNOTE.sub("", _without_hidden(text))
    text = _REFERENCE.sub(lambda m: f" ({notes[m[1]]})" if m[1] in notes else m[0], text)
    text = _EMBEDDED.sub(lambda m: "" if _FILE_NAME.fullmatch(m[1].strip()) else m[1], _PICTURE.sub("", text))
    text = _WIKI_LINK.sub(lambda m: m[2] or m[1].lstrip("#").replace("#", " › "), text)
    text = re.sub(r"<br\s*/?>", " ", _LOCAL_LINK.sub(r"\1", text), flags=re.IGNORECASE)
    return "\n".join(_with_rows(_BLOCK_ID.sub("", _MARKUP.sub("", text)).split("\n")))


def _cells(line: str) -> list[str]:
    return [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line.strip().removeprefix("|").removesuffix("|"))]


def _with_rows(lines: Sequence[str]) -> Iterator[str]:
    "Lines of a text, each row of a table as one that names its columns."
    header: list[str] | None = None
    for n, line in enumerate(lines):
        following = lines[n + 1] if n + 1 < len(lines) else ""
        if header is None and "|" in line and "|" in following and _RULE.fullmatch(following) and not _RULE.fullmatch(line):
            header = _cells(line)
        elif header is not None and "|" in line:
            if not (_RULE.fullmatch(line) and lines[n - 1] != line):
                named = [f"{name}: {cell}" if name else cell for name, cell in zip(header, _cells(line), strict=False) if cell]
                yield f"- {'; '.join(named)}"
        else:
            header = None
            yield line


_WHO = (r"(?:[^\w\s#*_|>-]{1,4}\s{0,2})?(?:(?P<user>user|you|me|human|prompt|사용자|유저|나)|(?P<system>system|시스템)|"
        r"(?P<assistant>assistant|response|ai|bot|chatbot|copilot|perplexity|(?:chat)?gpt(?:[ -]?\d[\w.]*)?|"
        r"(?:claude|gemini|deepseek|grok|llama|mistral)(?: [\w.]+){0,2}|어시스턴트|인공지능|챗봇|챗 ?gpt|챗지피티|클로드|제미나이))"
        r"(?: said|의 말)?")
_AT = r"(?:\s*[(\[·|—–-]\s*(?P<at>[^)\]\n]{0,20}?\d{4}[^)\]\n]{0,40}?)[)\]]?)?"
_MARKS = tuple(re.compile(mark, re.IGNORECASE) for mark in (  # who speaks next: a heading, bold words, a name and a colon
    rf"(?P<level>#{{1,6}})\s+[*_]*{_WHO}[*_]*{_AT}\s*[:：]?[*_]*(?P<words>)\s*",
    rf"[*_]{{2}}{_WHO}{_AT}(?:\s*[:：]\s*[*_]{{2}}|[*_]{{2}}\s*[:：]|[*_]{{2}}(?=\s*$))\s*(?P<words>.*)",
    rf"{_WHO}{_AT}\s*[:：](?:\s+(?P<words>.*)|\s*)"))
_ABOVE = 300  # characters that may stand above the first turn, such as a date and an address; more of them are a note
_ROLES = ("user", "assistant", "system")
_LINE_BETWEEN = re.compile(r"\s*(?:-{3,}|\*{3,}|_{3,})")


def chat_turns(text: str,  # a file
               ) -> list[dict[str, str]]:
    """Return the turns of a chat that was written out with the names of who speaks, as headings, in bold or before a colon: role, text and,
    where it is told, valid_from. Empty: it is no chat of a person and an assistant."""
    lines, marks = text.split("\n"), footnotes(text)
    plain = [n for n, kind in enumerate(line_kinds(lines)) if kind == "text"]
    for form in _MARKS:
        found = [(n, m) for n in plain if (m := form.fullmatch(lines[n].rstrip()))]
        found = [(n, m) for n, m in found if form is not _MARKS[0] or m["level"] == found[0][1]["level"]]
        if not {"user", "assistant"} <= {next(r for r in _ROLES if m[r]) for _, m in found}:
            continue
        close = any(lines[n - 1].strip() for n, _ in found[1:])  # a few names that follow one another are a list of them
        above = "".join(line for line in lines[:found[0][0]] if not line.startswith("#"))
        if len(above) > _ABOVE or (form is _MARKS[2] and close and len(found) < 3):
            continue
        ends, turns = [*(n for n, _ in found[1:]), len(lines)], list[dict[str, str]]()
        for (n, m), end in zip(found, ends, strict=True):
            above, _, last = (body := "\n".join([m["words"] or "", *lines[n + 1:end]]).rstrip()).rpartition("\n")
            if words := note_words(above if _LINE_BETWEEN.fullmatch(last) else body, marks):
                turns.append({"role": next(r for r in _ROLES if m[r]), "text": words, **_said_at(m["at"])})
        return turns
    return []


def _said_at(words: str | None) -> dict[str, str]:
    "The time that stands beside a name, as a field; empty: there is none, or it has no one reading."
    with suppress(InvalidInput):
        if words and (time := as_time(words.strip())):
            return {"valid_from": time}
    return {}
