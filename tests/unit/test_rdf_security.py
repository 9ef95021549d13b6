"Files and queries by strangers: whatever they try, the host lives, nothing is fetched, and one sentence says what was wrong."
import http.server
import io
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

pytest.importorskip("pyoxigraph", reason="needs the extra agent")

from rlm.agent.ontology import rdf_worker, setup_ontology_context
from rlm.agent.ontology.context import OntologyContext
from rlm.agent.ontology.query_tools import refuse_query, words_of
from rlm.agent.ontology.rdf_client import (
    OntologyError,
    RdfLimits,
    RdfProcess,
    RdfSource,
    RemoteGraph,
    read_source,
    refuse_bombs,
    syntax_of,
)

ENTITIES = b"".join(b'<!ENTITY %c "%s">' % (98 + i, b"&%c;" % (97 + i) * 10) for i in range(9))
LAUGHS = (b"<?xml version='1.0'?><!DOCTYPE r [<!ENTITY a \"haha\">" + ENTITIES +
          b"]><r:RDF xmlns:r='http://www.w3.org/1999/02/22-rdf-syntax-ns#'><r:Description r:about='http://e/a' r:value='&j;'/></r:RDF>")


@pytest.fixture(scope="module")
def web() -> Iterator[tuple[str, list[str]]]:
    "A server on this machine that notes who asks."
    asked: list[str] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b'{"@context": {"name": "http://e/name"}}')

        do_POST = do_GET

        def log_message(self, *args: object) -> None:
            "Say nothing."

    server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/", asked
    server.shutdown()
    server.server_close()


def put(folder: Path, name: str, data: bytes) -> Path:
    path = folder / name
    path.write_bytes(data)
    return path


HOSTILE: dict[str, tuple[str, bytes]] = {
    "a billion laughs": ("a.rdf", LAUGHS),
    "a file of the machine": (
        "a.rdf",
        b"<!DOCTYPE r [<!ENTITY x SYSTEM 'file:///etc/passwd'>]><rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#'>&x;</rdf:RDF>",
    ),
    "an outer DTD": (
        "a.rdf",
        b"<!DOCTYPE r SYSTEM 'http://127.0.0.1:1/x.dtd' [<!ENTITY % p SYSTEM 'http://127.0.0.1:1/x'>]><rdf:RDF/>",
    ),
    "quadratic blow-up": ("a.rdf", b"<!DOCTYPE r [<!ENTITY x '" + b"h" * 999 + b"'>]><rdf:RDF>" + b"&x;" * 200_000 + b"</rdf:RDF>"),
    "UTF-16 to hide in": ("a.rdf", LAUGHS.decode().encode("utf-16")),
    "lists in lists": ("a.ttl", b"@prefix : <http://e/> . :a :b " + b"(" * 300_000),
    "triples about triples about triples": ("a.ttl", b"@prefix : <http://e/> . :a :b " + b"<<( :a :b " * 100_000),
    "elements in elements": (
        "a.rdf",
        b"<rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#' xmlns:e='http://e/'>" + b"<e:a><e:b>" * 50_000,
    ),
    "JSON in JSON": ("a.jsonld", b'{"@graph":' * 100_000),
    "JSON contexts": ("a.jsonld", b'{"@context": [' * 50_000),
    "no RDF": ("a.ttl", b"Dear diary, today I had tea."),
    "binary": ("a.nt", bytes(range(1, 256)) * 40),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_file_is_one_sentence(name: str, tmp_path: Path) -> None:
    file, data = HOSTILE[name]
    begun = time.monotonic()
    limits, path = RdfLimits(load_seconds=1.5, memory=512 << 20), put(tmp_path, file, data)
    with pytest.raises(OntologyError) as caught:
        setup_ontology_context(path, limits=limits)
    assert time.monotonic() - begun < 60
    assert len(str(caught.value)) < 600 and "\n" not in str(caught.value) and "Traceback" not in str(caught.value)
    assert str(tmp_path) not in str(caught.value)


def test_the_worker_alone_survives_what_the_scan_refuses() -> None:
    for syntax, data in [("rdfxml", LAUGHS), ("turtle", HOSTILE["lists in lists"][1])]:
        with pytest.raises(OntologyError):
            RemoteGraph(RdfSource("x", Path("x"), data, syntax), RdfLimits(load_seconds=1.5, memory=512 << 20)).load()


def test_nothing_is_fetched(tmp_path: Path, web: tuple[str, list[str]]) -> None:
    url, asked = web
    context = json.dumps({"@context": url + "context.json", "@id": "http://e/a", "name": "b"}).encode()
    with pytest.raises(OntologyError):
        setup_ontology_context(put(tmp_path, "a.jsonld", context))
    imports = f"@prefix owl: <http://www.w3.org/2002/07/owl#> . <http://e/> a owl:Ontology ; owl:imports <{url}other.ttl> .".encode()
    with setup_ontology_context(put(tmp_path, "a.ttl", imports)) as loaded:
        assert loaded.meta.imports == (url + "other.ttl",)
    assert asked == []


def test_a_query_that_passed_the_check_would_still_reach_nothing(web: tuple[str, list[str]], tmp_path: Path) -> None:
    url, asked = web
    secret = put(tmp_path, "secret.ttl", b"<http://e/a> <http://e/b> <http://e/secret> .")
    source = RdfSource("x", Path("x"), b"<http://e/a> <http://e/b> <http://e/c> .", "turtle")
    graph = RemoteGraph(source, RdfLimits(query_seconds=3))
    graph.load()
    for query in [f"SELECT * {{ SERVICE <{url}> {{ ?s ?p ?o }} }}", f"SELECT * FROM <{secret.as_uri()}> {{ ?s ?p ?o }}",
                  f"SELECT * FROM <{url}x.ttl> {{ ?s ?p ?o }}", f"LOAD <{secret.as_uri()}>"]:
        said = graph.query(query, {})
        assert "secret" not in json.dumps(said.get("rows", "")), query
    graph.close()
    assert asked == []


@pytest.mark.skipif(os.name != "posix", reason="needs SIGKILL")
def test_a_query_whose_process_is_killed_says_so_at_once_and_the_next_one_is_answered() -> None:
    graph = RemoteGraph(read_source("prov"), RdfLimits(query_seconds=60))
    graph.load()

    def kill() -> None:
        assert graph._worker  # a kill reaches the process alone
        os.kill(graph._worker._process.pid, signal.SIGKILL)
    timer, begun = threading.Timer(.5, kill), time.monotonic()
    timer.start()
    said = graph.query("SELECT * { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i }", {})
    assert said["error"] == "killed" and "killed from outside" in said["message"] and time.monotonic() - begun < 30
    assert graph.query("SELECT * { ?a ?b ?c }", {})["total"] > 100
    worker = graph._worker
    kill()
    assert worker
    worker._process.wait()
    assert graph.query("SELECT * { ?a ?b ?c }", {})["total"] > 100, "one that was killed between two queries is started anew"
    graph.close()


@pytest.fixture(scope="module")
def prov() -> Iterator[OntologyContext]:
    with setup_ontology_context("prov", limits=RdfLimits(query_seconds=1.5, memory=1 << 30)) as context:
        yield context


REFUSED = [
    "SELECT * { SERVICE <http://e/> { ?s ?p ?o } }",
    "SELECT * { sErViCe SILENT <http://e/> { ?s ?p ?o } }",
    "SELECT * FROM <http://e/> { ?s ?p ?o }",
    "SELECT * FROM NAMED <file:///etc/passwd> { ?s ?p ?o }",
    "LOAD <file:///etc/passwd>",
    "INSERT DATA { <a:b> <a:b> 1 }",
    "DELETE WHERE { ?s ?p ?o }",
    "DROP ALL",
    "CLEAR DEFAULT",
    "ASK {} ; LOAD <http://e/>",
    "SELECT * { \\u0053ERVICE <http://e/> {} }",
    "SELECT * { ?s ?p '\\'' . SERVICE <http://e/> {} }",
    'SELECT * { ?s ?p """a\\""" """ . SERVICE <http://e/> {} }',
    "SELECT * { ?s ?p 'x' # '\n SERVICE <http://e/> {} }",
    "SELECT * { <http://e/#> ?p ?o . SERVICE <http://e/> {} }",
    "SELECT * { ?s ?p ?o FILTER(1 <2) SERVICE <http://e/> {} FILTER(3> 2) }",
    "",
    "   ",
    "PREFIX x: <http://e/>",
    "SELECT " + "?x " * 10_000,
]


@pytest.mark.parametrize("query", REFUSED, ids=lambda q: q[:50] or "empty")
def test_a_forbidden_query_is_refused(query: str, prov: OntologyContext) -> None:
    with pytest.raises(OntologyError) as caught:
        prov.sparql(query)
    assert caught.value.hint


@pytest.mark.parametrize(
    "query",
    [
        "SELECT ?from ?load { ?from a ?load } LIMIT 1",
        "ASK { ?s rdfs:label 'DROP the SERVICE' }",
        "SELECT * { ?s a owl:Class } # FROM here\nLIMIT 1",
        "SELECT (STR(<http://e/delete>) AS ?insert) {}",
        "PREFIX service: <http://e/> ASK { ?s service:from ?o }",
        "CONSTRUCT { ?s a owl:Class } WHERE { ?s a owl:Class } LIMIT 1",
        "DESCRIBE prov:Agent",
        "SELECT * { ?s rdfs:label 'caf\\u00e9' } # \\u00e9\r\nLIMIT 1",
        "SELECT * { ?s rdfs:label '''a\r\nSERVICE''' } LIMIT 1",
        "PREFIX service: <http://e/> SELECT * { ?s a service:Service . { ?s ?p <http://e/SERVICE/(a)> } }",
        "PREFIX ex: <http://e/> SELECT * { GRAPH ex:g { ?s ex:aService ex:from } }",
        "SELECT * { ?s ?p ?o FILTER((1<2)&&(3>2)) FILTER(?o IN (<a>, <http://e/it's)#from>)) }",
        "SELECT * { ?s ?p <#Agent> } LIMIT 1",
    ],
)
def test_words_that_only_look_forbidden_are_fine(query: str, prov: OntologyContext) -> None:
    assert prov.sparql(query).total >= 0


P = "PREFIX : <{url}> PREFIX ex: <{url}> PREFIX SERVICEex: <http://e/> PREFIX p: <http://e:80> "
SMUGGLED = {  # each is a call of SERVICE to one of the engines, or would be if it were a little more lenient
    "a carriage return ends a comment": "SELECT * {{ # x\r SERVICE <{url}> {{ ?s ?p ?o }} }}",
    "carriage returns before a line feed": "SELECT * {{ # x\r\r\n SERVICE <{url}> {{ ?s ?p ?o }} }}",
    "a carriage return does not end a comment": "SELECT * {{ # x\r '''\n SERVICE <{url}> {{ ?s ?p ?o }} }} #'''",
    "a carriage return in a string": "SELECT * {{ ?a ?b '''\r''' }}",
    "an escaped line feed in a comment": "SELECT * {{ # \\u000A SERVICE <{url}> {{ ?s ?p ?o }} \n}}",
    "a long escape": "SELECT * {{ # \\U0000000A SERVICE <{url}> {{ ?s ?p ?o }} \n}}",
    "a long escape with a small u": "SELECT * {{ # \\u0000000a SERVICE <{url}> {{ ?s ?p ?o }} \n}}",
    "an escaped carriage return": "SELECT * {{ # \\u000d SERVICE <{url}> {{ ?s ?p ?o }} \n}}",
    "an escaped quote": "SELECT * {{ ?a ?b '\\u0027 OPTIONAL {{ SERVICE <{url}> {{ ?s ?p ?o }} }} }}#'",
    "an escaped backslash and quote": "SELECT * {{ ?a ?b '\\u005c\\u0027 }}",
    "an escaped end of an IRI": "SELECT * {{ ?a ?b <http://e/\\u003ESERVICE:a\\u007B\\u007D#> }}",
    "an escape in a prefixed name": P + "SELECT * {{ ex:\\u0053ERVICE ?p ?o }}",
    "no space behind the keyword": P + "SELECT * {{ SERVICE:a {{ ?s ?p ?o }} }}",
    "a prefix that begins with the keyword": P + "SELECT * {{ serviceEX:a {{ ?s ?p ?o }} }}",
    "silent, without a space": P + "SELECT * {{ SERVICESILENT:a {{ ?s ?p ?o }} }}",
    "a keyword behind a dot": P + "SELECT * {{ ?a ?b ?c .SERVICE:a {{ ?s ?p ?o }} }}",
    "a keyword behind a number": P + "SELECT * {{ ?a ?b 1.SERVICE:a {{ ?s ?p ?o }} }}",
    "a keyword behind a number and a letter": P + "SELECT * {{ ?a ?b 1e3SERVICE <{url}> {{ ?s ?p ?o }} }}",
    "a keyword behind true": "SELECT * {{ ?a ?b trueSERVICE <{url}> {{ ?s ?p ?o }} }}",
    "a keyword behind an empty local name": P + "SELECT * {{ ?a ?b ex:.SERVICE <{url}> {{ ?s ?p ?o }} }}",
    "a keyword behind two dots": P + "SELECT * {{ ?a ?b ex:a.b.SERVICE SILENT <{url}> {{ ?s ?p ?o }} }}",
    "a local name that its IRI can't take": P + "SELECT * {{ ?a ?b p:SERVICE <{url}> {{ ?s ?p ?o }} }}",
    "a comparison that looks like an IRI": P + "SELECT * {{ FILTER(1<2)SERVICE:a#>\n{{ ?s ?p ?o }} }}",
    "a comparison with a variable": "SELECT * {{ VALUES ?x {{ <{url}> }} FILTER(1<2)SERVICE?x#>\n{{ ?s ?p ?o }} }}",
    "a comparison without a comment": "SELECT * {{ FILTER(1<2)SERVICE?x>3 }}",
    "a comparison with a string": "SELECT * {{ ?a ?b ?c FILTER(?c<'>')SERVICE <{url}> {{ ?s ?p ?o }} }} #'",
    "a space in an IRI for one engine": "SELECT * {{ ?a ?b <http://e/\xa0'''> SERVICE <{url}> {{ ?s ?p ?o }} }} #'''",
    "a long s": "SELECT * {{ \u017fERVICE <{url}> {{ ?s ?p ?o }} }}",
    "a dotless i": "SELECT * {{ SERV\u0131CE <{url}> {{ ?s ?p ?o }} }}",
}


@pytest.mark.parametrize("name", SMUGGLED)
def test_a_keyword_that_an_engine_would_see_is_seen(name: str, web: tuple[str, list[str]], tmp_path: Path) -> None:
    url, asked = web
    file = put(tmp_path, "a.ttl", b"<http://e/a> <http://e/b> true, 1 .")
    with setup_ontology_context(file) as context, pytest.raises(OntologyError) as caught:
        context.sparql(SMUGGLED[name].format(url=url))
    assert caught.value.hint and "not answered" not in str(caught.value)
    assert asked == []


def test_a_query_without_end_is_stopped_and_the_next_one_answered(prov: OntologyContext) -> None:
    endless = [
        "SELECT (COUNT(*) AS ?n) { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i . ?j ?k ?l }",
        "SELECT ?x { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i . BIND(CONCAT(STR(?a), STR(?d), STR(?g)) AS ?x) } ORDER BY ?x",
        "ASK { ?x (rdfs:subClassOf|!rdfs:subClassOf)* ?y . ?y (rdfs:label|!rdfs:label)* ?z . ?z !rdfs:label+ ?w FILTER(?w = 7) }",
    ]
    for query in endless:
        begun = time.monotonic()
        with pytest.raises(OntologyError) as caught:
            prov.sparql(query)
        assert time.monotonic() - begun < 60
        assert caught.value.hint.startswith("Make it narrower"), caught.value
    assert prov.sparql("SELECT ?c { ?c rdfs:subClassOf prov:Agent }").total == 3


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * " + "{" * 9_000,
        "SELECT * { ?s " + "(" * 9_000,
        "ASK { FILTER(" + "(" * 9_000,
        "SELECT * { ?s " + "^" * 9_000 + " <a:b> ?o }",
    ],
    ids=["groups", "lists", "brackets", "inverses"],
)
def test_a_deep_query_does_not_take_the_host_down(text: str, prov: OntologyContext) -> None:
    with pytest.raises(OntologyError):
        prov.sparql(text)
    assert prov.sparql("ASK { prov:Agent a owl:Class }").answer is True


def test_a_result_is_counted_to_its_end_but_not_kept(prov: OntologyContext) -> None:
    handle = prov.sparql("SELECT ?a ?b { ?a a owl:ObjectProperty . ?b a ?t . ?t a ?u }")
    assert handle.total == len(list(prov.graph.query("SELECT ?a ?b { ?a a owl:ObjectProperty . ?b a ?t . ?t a ?u }")))
    big = prov.sparql("SELECT ?a ?b { ?a a owl:Class . ?b rdfs:label ?c . ?d a owl:ObjectProperty }")
    assert big.total > big.kept == 10_000
    view = big.page(offset=9_999)
    assert view["total"] == big.total and view["truncated"] and "10000" in view["note"]


def test_an_error_of_the_parser_tells_the_model_where(prov: OntologyContext) -> None:
    with pytest.raises(OntologyError, match=r"not answered: .*1:\d+") as caught:
        prov.sparql("SELECT ?c { ?c rdfs:subClassOf }")
    assert caught.value.hint == "Correct the query." and len(str(caught.value)) < 300


def test_the_worker_sees_no_environment_and_can_open_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RLM_OPENAI_KEY", "secret")
    worker = RdfProcess()
    worker.ask({"op": "load", "syntax": "turtle", "base": "http://e/", "triples": 9}, 10)
    if not Path("/proc").is_dir():
        pytest.skip("needs /proc")
    place = Path("/proc", str(worker._process.pid))
    assert b"secret" not in (place / "environ").read_bytes()
    limits = (place / "limits").read_text()
    assert "Max open files            0" in limits and "Max file size             0" in limits
    worker.close()
    assert not worker.alive


def test_a_worker_loads_answers_and_says_what_it_can_not_do() -> None:
    file = b'@prefix ex: <http://e/> . ex:tea ex:like ex:coffee ; ex:name "tea", "\xec\xb0\xa8"@ko, 3 . ex:tea ex:like ex:coffee .'
    asking = {"prefixes": {"ex": "http://e/"}, "base": "http://rlm.invalid/", "rows": 2, "characters": 99}
    loading = {"op": "load", "syntax": "turtle", "base": "http://rlm.invalid/", "body": len(file)}
    asked = b"".join(json.dumps(q).encode() + b"\n" + (file if q["op"] == "load" else b"") for q in [
        {**loading, "triples": 10},
        {"op": "query", "text": "SELECT ?n { ?x ex:name ?n } ORDER BY ?n", **asking},
        {"op": "query", "text": "ASK { ?x ex:like ?x }", **asking},
        {"op": "query", "text": "SELECT", **asking},
        {**loading, "triples": 1}])
    rdf_worker.serve(rdf_worker.Oxigraph(), io.BytesIO(asked), answers := io.BytesIO())
    loaded, found, no, nonsense, large = map(json.loads, answers.getvalue().splitlines())
    assert len(loaded["flat"]) == 12 and ["차", "ko", ""] in loaded["terms"] and loaded["prefixes"]["ex"] == "http://e/"
    assert found["columns"] == ["n"] and found["total"] == 3 and len(found["rows"]) == 2 and no == {"boolean": False}
    assert nonsense["error"] == "syntax" and large["error"] == "size"


def test_terms_that_json_can_not_hold_are_left_out_and_counted() -> None:
    triples = [("a", "p", "b"), ("b", "p", "a"), ("a", "p", "b"), ("a", "p", 7)]
    shown = rdf_worker.numbered(triples, lambda t: t if isinstance(t, str) else None, most=5)
    assert shown == {"terms": ["a", "p", "b", None], "flat": [0, 1, 2, 2, 1, 0], "left_out": 1}


def test_a_context_that_is_gone_leaves_no_process() -> None:
    context = setup_ontology_context("skos")
    process = context._remote._worker._process  # type: ignore[union-attr]
    assert process.poll() is None
    del context
    import gc
    gc.collect()
    assert process.poll() is not None


@pytest.mark.parametrize("size", [5_000, 200_000])
def test_scans_take_no_time_on_texts_made_to_backtrack(size: int) -> None:
    begun = time.process_time()
    for data in [
        b"<!-- a -->" * size,
        b"<!-- " * size,
        b"<!DOCTYPE a [" * size,
        b"<!ENTITY" + b" " * size,
        b"<!ENTITY a '" * size,
        b"# x\n" * size,
        b"<a " * size,
    ]:
        for act in (lambda d: syntax_of("a.rdf", d), lambda d: refuse_bombs("a.rdf", d)):
            try:
                act(data)
            except OntologyError:
                continue
    assert time.process_time() - begun < 5


def test_a_query_made_to_backtrack_is_checked_at_once() -> None:
    begun = time.process_time()
    for text in ["'", '"', "<", "?", "a:", "'''\\'", ".", "-", "<a", "a.", "(<a)", "#", "a", "@"]:
        try:
            words_of(text * (20_000 // len(text)))
        except OntologyError:
            continue
    assert time.process_time() - begun < 5


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(alphabet="SERVICEserviceFROM {}<>?$'\"\\#\n:.ab@", max_size=60))
def test_a_query_that_is_let_through_holds_no_forbidden_word_of_its_own(text: str) -> None:
    try:
        refuse_query("ASK { " + text + " }")
    except OntologyError:
        return
    assert not {"SERVICE", "FROM"} & set(words_of(text))


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        ("a.docx", b"PK\x03\x04", "compressed or binary"),
        ("a.ttl", b"", "is empty"),
        ("a.txt", b"x", "no RDF format"),
        ("a.owl", b"Prefix(:=<http://e/>)", "functional syntax"),
        ("a.ttl", b"<!DOCTYPE html><html/>", "a web page"),
        ("a.owl", b'<?xml version="1.0"?><Ontology xmlns="http://www.w3.org/2002/07/owl#"/>', "OWL/XML"),
    ],
)
def test_a_file_that_is_no_rdf_gets_one_clear_sentence(name: str, data: bytes, said: str, tmp_path: Path) -> None:
    with pytest.raises(OntologyError, match=said):
        read_source(put(tmp_path, name, data))


def test_a_file_that_is_too_large_is_not_read(tmp_path: Path) -> None:
    with pytest.raises(OntologyError, match="101 bytes; 100 are allowed"):
        setup_ontology_context(put(tmp_path, "a.ttl", b"#" * 101), max_bytes=100)
    many = b"".join(b"<http://e/%d> <http://e/p> <http://e/> .\n" % i for i in range(200))
    with pytest.raises(OntologyError, match="more than 100 triples"):
        setup_ontology_context(put(tmp_path, "b.nt", many), limits=RdfLimits(triples=100))


HUNGRY = {
    "optional patterns that share nothing": "SELECT * { ?a ?b ?c OPTIONAL { ?d ?e ?f OPTIONAL { ?g ?h ?i } } } ORDER BY ?i",
    "a text doubled forty times": "SELECT ?z { BIND('0123456789' AS ?a0) " + " ".join(
        f"BIND(CONCAT(?a{i}, ?a{i}) AS ?a{i + 1})" for i in range(40)) + " BIND(STRLEN(?a40) AS ?z) }",
    "replacements of replacements": f"SELECT ?z {{ BIND('{'a' * 64}' AS ?a0) " + " ".join(
        f"BIND(REPLACE(?a{i}, 'a', '{'a' * 68}') AS ?a{i + 1})" for i in range(6)) + " BIND(STRLEN(?a6) AS ?z) }",
    "three patterns in order": "SELECT ?a ?b ?d { ?a ?p1 ?x . ?b ?p2 ?y . ?c ?p3 ?z } ORDER BY ?d"}
PEAK = """import resource, sys
from rlm.agent.ontology import setup_ontology_context
with setup_ontology_context("prov") as context:
    sparql = context.tools["sparql"]
    try:
        print(sparql(sys.argv[1]).total)
    except ValueError as e:
        print(e)
    print(sparql("SELECT (COUNT(*) AS ?n) { ?s ?p ?o }").total)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss >> 10)"""


@pytest.mark.skipif(sys.platform != "linux", reason="the address space is limited on Linux")
@pytest.mark.parametrize("name", HUNGRY)
def test_a_query_takes_half_a_gigabyte_at_most(name: str) -> None:
    "The process that reads a small ontology takes 30 MB."
    done = subprocess.run([sys.executable, "-c", PEAK, HUNGRY[name]], capture_output=True, text=True, timeout=120, check=True)
    *said, after, peak = done.stdout.splitlines()
    assert "memory" in said[0] and after == "1" and int(peak) < 600, done.stdout


@pytest.mark.skipif(sys.platform != "linux", reason="the address space is limited on Linux")
def test_a_small_file_takes_little_memory_to_refuse() -> None:
    code = ("import resource\nfrom pathlib import Path\nfrom rlm.agent.ontology.rdf_client import RemoteGraph\n"
            "from rlm.agent.ontology.rdf_client import RdfSource\ndata = b'{\"http://e/a\":' * 50_000 + b'1' + b'}' * 50_000\n"
            "try:\n    RemoteGraph(RdfSource('x', Path('x'), data, 'jsonld')).load()\nexcept ValueError as e:\n    print(e)\n"
            "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss >> 10)")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    assert "memory" in done.stdout and int(done.stdout.splitlines()[-1]) < 750, done.stdout
