"""Strangers' RDF files and a model's SPARQL queries, read in a process that may die.

`rdf_client` starts this file by its path, in an isolated interpreter, so it imports the standard library alone, and pyoxigraph.
A question is a line of JSON, perhaps followed by bytes; the answer is a line of JSON. Before the first question the process gives up
all files, sockets and memory beyond a limit. What goes wrong is answered as `error` (time, memory, depth, size, syntax or crash) and
`message`; a process that dies is noticed by the host.

A parse gives terms, each once, and triples as three numbers each.
"""
import json
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any, BinaryIO

Cell = str | list[str] | None  # an IRI, "_:" and a blank node's name, [text, language, datatype], or nothing bound
Results = tuple[list[str], Iterable[Iterable[Any]]] | bool  # column names and rows, or the answer of an ASK
FORMATS = {"turtle": "TURTLE", "ntriples": "N_TRIPLES", "nquads": "N_QUADS", "trig": "TRIG", "rdfxml": "RDF_XML", "jsonld": "JSON_LD"}


def memory_limiter(most: int,  # bytes of address space in all
                   ) -> Callable[[int], None]:
    "Return a function that allows so many bytes beyond what the process has then. Call it before `confine`: it opens a file, and keeps it."
    try:
        import resource
        statm = os.open("/proc/self/statm", os.O_RDONLY)
    except (ImportError, OSError):  # not Linux
        return lambda extra: None
    page = resource.getpagesize()

    def limit(extra: int) -> None:
        size = int(os.pread(statm, 100, 0).split()[0]) * page
        resource.setrlimit(resource.RLIMIT_AS, (min(most, size + extra), most))
    return limit


def confine(memory: int,  # bytes of address space
            ) -> None:
    "Give up memory beyond a limit, and the right to open, make or write files and sockets. Where a system can't, the clock is left."
    try:
        import resource
    except ImportError:  # Windows
        return
    for name, most in (("RLIMIT_AS", memory), ("RLIMIT_CORE", 0), ("RLIMIT_FSIZE", 0), ("RLIMIT_NOFILE", 0)):
        try:
            resource.setrlimit(getattr(resource, name), (most, most))
        except (ValueError, OSError):  # macOS refuses RLIMIT_AS
            continue


def numbered(triples: Iterable[tuple[Any, Any, Any]],  # an engine's terms
             cell: Callable[[Any], Cell],              # turns a term into JSON; None for a term that JSON can't hold
             most: int,                                # triples
             ) -> dict[str, Any]:                      # terms, flat (three numbers a triple), left_out
    "Write all triples as numbers, each once. Raises `OverflowError` beyond the limit."
    numbers: dict[Any, int] = {}
    terms: list[Cell] = []
    flat: dict[tuple[int, ...], None] = {}
    left_out = 0
    for triple in triples:
        for term in triple:
            if term not in numbers:
                numbers[term] = len(terms)
                terms.append(cell(term))
        key = tuple(numbers[term] for term in triple)
        if any(terms[n] is None for n in key):
            left_out += 1
        else:
            flat[key] = None
        if len(flat) > most:
            raise OverflowError(f"it holds more than {most:,} triples")
    return {"terms": terms, "flat": [n for key in flat for n in key], "left_out": left_out}


class Oxigraph:
    "The engine: pyoxigraph's parsers and its store, in memory."

    def __init__(self) -> None:
        import pyoxigraph
        self.ox = pyoxigraph
        self.store = pyoxigraph.Store()

    def cell(self,
             term: Any,  # pyoxigraph's term
             ) -> Cell:
        "Turn a term into JSON."
        if isinstance(term, self.ox.NamedNode):
            return str(term.value)
        if isinstance(term, self.ox.Literal):
            return [term.value, term.language or "", "" if term.language else term.datatype.value]
        return f"_:{term.value}" if isinstance(term, self.ox.BlankNode) else None

    def parse(self,
              data: bytes,    # the file's content
              syntax: str,    # a key of FORMATS
              base: str,      # IRI against which relative IRIs are resolved
              most: int,      # triples
              lenient: bool,  # whether small faults are forgiven
              ) -> tuple[list[Any], dict[str, str]]:
        "Parse all graphs: subjects, predicates and objects, and the prefixes that the file declares."
        parser = self.ox.parse(input=data, format=getattr(self.ox.RdfFormat, FORMATS[syntax]), base_iri=base, lenient=lenient)
        quads = []
        for quad in parser:
            quads.append((quad.subject, quad.predicate, quad.object))
            if len(quads) > 2 * most:
                raise OverflowError(f"it holds more than {most:,} triples")
        return quads, dict(parser.prefixes)

    def load(self,
             data: bytes,   # the file's content
             syntax: str,   # a key of FORMATS
             base: str,     # IRI against which relative IRIs are resolved
             most: int,     # triples
             ) -> dict[str, Any]:
        "Parse, keep the graph for queries, and give everything back as numbers. A file with small faults is read leniently."
        lenient = ""
        try:
            quads, prefixes = self.parse(data, syntax, base, most, lenient=False)
        except (SyntaxError, ValueError) as e:
            try:
                quads, prefixes = self.parse(data, syntax, base, most, lenient=True)
            except (SyntaxError, ValueError):
                raise e from None
            lenient = str(e)
        triples = {self.ox.Triple(*q): None for q in quads}
        self.store.bulk_extend(self.ox.Quad(*t) for t in triples)
        return numbered(map(tuple, triples), self.cell, most) | {"prefixes": prefixes, "lenient": lenient}

    def query(self,
              text: str,                    # SPARQL
              prefixes: Mapping[str, str],  # prefixes declared for the query
              base: str,                    # IRI against which relative IRIs are resolved
              ) -> Results:
        "Run a query."
        found: Any = self.store.query(text, prefixes=dict(prefixes), base_iri=base)
        if isinstance(found, self.ox.QueryBoolean):
            return bool(found)
        if isinstance(found, self.ox.QueryTriples):
            return ["subject", "predicate", "object"], found
        return [v.value for v in found.variables], found


def rows_of(found: Results,               # result of `query`
            cell: Callable[[Any], Cell],  # turns a term into JSON
            most_rows: int,               # rows kept
            most_characters: int,         # characters kept, all cells together
            ) -> dict[str, Any]:          # columns, rows, total; or boolean
    "Keep the first rows, and count all of them."
    if isinstance(found, bool):
        return {"boolean": found}
    columns, rows = found
    kept: list[list[Cell]] = []
    total = size = 0
    for row in rows:
        total += 1
        if len(kept) < most_rows and size < most_characters:
            cells = [None if term is None else cell(term) for term in row]
            size += sum(len(c if isinstance(c, str) else c[0]) for c in cells if c)
            kept.append(cells)
    return {"columns": columns, "rows": kept, "total": total}


def answer(engine: Oxigraph,    # the engine that holds the graph
           asked: Mapping[str, Any],     # op: load or query, and its arguments
           body: bytes,                  # bytes that came after the line
           limit: Callable[[int], None] = lambda extra: None,  # from `memory_limiter`
           ) -> dict[str, Any]:
    "Answer one question; what goes wrong becomes an error that names its kind."
    try:
        if asked["op"] == "load":
            return engine.load(body, asked["syntax"], asked["base"], asked["triples"])
        limit(asked.get("memory", sys.maxsize >> 1))
        found = engine.query(asked["text"], asked["prefixes"], asked["base"])
        return rows_of(found, engine.cell, asked["rows"], asked["characters"])
    except MemoryError:
        return {"error": "memory", "message": "it needs more memory than allowed"}
    except OverflowError as e:
        return {"error": "size", "message": str(e)}
    except RecursionError:
        return {"error": "depth", "message": "it nests too deeply"}
    except Exception as e:  # a process that answers JSON has no other way to say what went wrong
        return {"error": "syntax", "message": " ".join(str(e).split())[:300]}


def serve(engine: Oxigraph,  # the engine that answers
          asked: BinaryIO,            # a line of JSON, then `body` bytes
          answers: BinaryIO,          # a line of JSON each
          limit: Callable[[int], None] = lambda extra: None,  # from `memory_limiter`
          ) -> None:
    "Give one answer to each question, until the input ends."
    for line in iter(asked.readline, b""):
        question = json.loads(line)
        said = answer(engine, question, asked.read(question.get("body", 0)), limit)
        answers.write(json.dumps(said, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace") + b"\n")
        answers.flush()


def main(memory: int,  # bytes of address space
         ) -> None:
    "Load the engine, give up what is not needed, and answer."
    engine, limit = Oxigraph(), memory_limiter(memory)
    confine(memory)
    serve(engine, sys.stdin.buffer, sys.stdout.buffer, limit)
