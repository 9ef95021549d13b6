"A memory behind a server: the verbs of Memory, over the REST API."
import asyncio
import inspect
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from serving import serving

import rlm
from rlm.core.errors import AlreadyExists, InvalidInput, NotFound, VersionConflict
from rlm.service.http.tokens import TokenFile
from rlm.service.remote import RemoteError, RemoteMemory
from rlm.service.results import by_column

pytestmark = pytest.mark.usefixtures("bare")


@pytest.fixture
def remote(tmp_path: Path) -> Iterator[RemoteMemory]:
    "A server for anyone on loopback."
    with serving(tmp_path / "memory.db", serve_rate=0) as running:
        yield rlm.connect(running.url)


def test_a_memory_is_written_found_changed_deleted_and_restored(remote: RemoteMemory) -> None:
    at = datetime(2026, 5, 8, 9, tzinfo=UTC)
    made = remote.write("치과 예약은 화요일이야", id="민아/치과", tags=["health"], valid_from=at, extra={"n": [1]})
    remote.write("The car is blue.")
    assert (made.id, made.version, made.tags, made.valid_from, made.extra) == ("민아/치과", 1, ("health",), at, {"n": [1]})
    assert remote.get(made.id) == made and made.valid_to is None and made.pinned is False
    [hit] = remote.search("치과는 언제?", k=1, tags=["health"])
    assert hit.memory == made and hit.text == hit.passage.text and abs(sum(by_column(hit.parts).values()) - hit.score) < 1e-9
    changed = remote.update(made.id, text="치과 예약은 수요일이야", if_version=1)
    assert changed.version == 2 and changed.text == "치과 예약은 수요일이야"
    with pytest.raises(VersionConflict):
        remote.update(made.id, text="목요일", if_version=1)
    assert remote.delete(made.id) == 1
    with pytest.raises(NotFound, match="There is no memory"):
        remote.get(made.id)
    assert remote.restore(made.id).text == changed.text
    assert len(remote.history(made.id)["versions"]) >= 2
    remote.feedback(made.id, helped=1)
    assert remote.get(made.id).success == 1
    assert remote.explain("치과", made.id)


def test_an_address_gives_the_memory_behind_it_and_the_same_hits_as_the_file(tmp_path: Path) -> None:
    long = "The boat is old. " * 30 + "Yuna Park services the boiler. " + "It rains often. " * 30
    with rlm.Memory(tmp_path / "memory.db", embedder="none") as own:
        own.write_many([{"text": long, "id": "long"}, {"text": "보일러는 박유나가 고친다.", "id": "ko", "pinned": True}])
        found, block = own.search("who services the boiler?"), own.context("boiler")
    with serving(tmp_path / "memory.db", serve_rate=0) as running, rlm.Memory(running.url) as memory:
        there = memory.search("who services the boiler?")
        assert isinstance(memory, RemoteMemory) and repr(there) == repr(found) and there.source == found.source
        assert there[0].passage == found[0].passage and there[0].parts == found[0].parts and there[0].relevance == found[0].relevance
        assert memory.context("boiler") == block and memory.stats()["memories"] == 2
        assert memory.namespaces() == ["default"]
        with pytest.raises(RemoteError, match="only the namespace"):
            memory.namespace("other").list()
        assert asyncio.run(memory.acontext("boiler")) == block and asyncio.run(memory.astats()) == memory.stats()
        with pytest.raises(InvalidInput, match="no filter"):
            memory.search("boiler", colour="blue")
    assert list(inspect.signature(rlm.Memory).parameters)[:3] == ["path", "namespace", "read_only"]


def test_many_conversations_links_and_pages(remote: RemoteMemory) -> None:
    one, two = remote.write_many(["first\u2028line", {"text": "둘", "tags": ["list"]}])
    assert (one.text, two.tags) == ("first\u2028line", ("list",)) and remote.write_many([]) == []
    turns = remote.add_conversation([("Mina", "The harbour was lovely."), {"text": "좋았어?", "role": "assistant"}], "june", tags=["trip"])
    assert [(t.session, t.turn, t.speaker, t.tags) for t in turns] == [("june", 0, "Mina", ("trip",)), ("june", 1, None, ("trip",))]
    remote.link(one.id, two.id, "supports", 0.5)
    assert [(e.src, e.dst, e.relation, e.weight) for e in remote.links(two.id) if e.relation == "supports"] == [
        (one.id, two.id, "supports", 0.5)]
    assert remote.unlink(one.id, two.id, "supports") == 1
    page = remote.list(3)
    rest = remote.list(3, cursor=page.next_cursor)
    assert [len(page), len(rest), rest.next_cursor] == [3, 1, None]
    assert [r.id for r in remote.list(tags=["trip", "list"], match="any", session="june")] == [turns[1].id, turns[0].id]


def test_what_can_not_be_done_raises_what_memory_raises(remote: RemoteMemory) -> None:
    remote.write("a", id="a")
    with pytest.raises(AlreadyExists):
        remote.write("b", id="a")
    for call in (lambda: remote.write(" "), lambda: remote.search("a", tag="x"), lambda: remote.write("a", colour="blue"),
                 lambda: remote.list(0), lambda: remote.write_many([{"text": "c"}, {"txt": "d"}])):
        with pytest.raises(InvalidInput):
            call()
    assert len(remote.list()) == 1


def test_the_twins_for_asyncio_do_the_same(remote: RemoteMemory) -> None:
    async def talk() -> None:
        made = await remote.awrite("The dentist is on Main Street.")
        many = await remote.awrite_many(["x", "y"])
        await remote.aadd_conversation(["hello"], "s")
        assert (await remote.aget(made.id)) == made and len(await remote.alist(2)) == 2
        assert (await remote.asearch("dentist", 1))[0].memory == made
        assert (await remote.aupdate(made.id, text="gone")).version == 2 and await remote.adelete(many[0].id) == 1
    asyncio.run(talk())


def test_a_token_opens_its_namespace_and_no_other(tmp_path: Path) -> None:
    book = TokenFile(tmp_path / "tokens")
    secret, _ = book.add(["mina", "shared"], ["write"])
    admin, _ = book.add("mina", ["admin"])
    with serving(tmp_path / "memory.db", tokens=book, serve_rate=0) as running:
        rlm.connect(running.url, secret).write("Mina's own")
        shared = rlm.connect(running.url, secret, namespace="shared")
        assert not shared.list() and len(rlm.connect(running.url, secret, namespace="mina").list()) == 1
        own = rlm.connect(running.url, admin).list()[0]
        with pytest.raises(RemoteError, match="right to erase"):
            rlm.connect(running.url, secret).delete(own.id, erase=True)
        assert rlm.connect(running.url, admin).delete(own.id, erase=True) == 1
        for wrong in (rlm.connect(running.url), rlm.connect(running.url, "nonsense"), rlm.connect(running.url, secret, namespace="other")):
            with pytest.raises(RemoteError):
                wrong.list()


def test_an_admin_erases_and_purges_a_namespace_as_in_the_file(tmp_path: Path) -> None:
    book = TokenFile(tmp_path / "tokens")
    admin, writer = book.add(["mina", "서윤/집"], ["admin"])[0], book.add("mina", ["write"])[0]
    with serving(tmp_path / "memory.db", tokens=book, serve_rate=0) as running:
        memory, home = rlm.connect(running.url, admin), rlm.connect(running.url, admin, namespace="서윤/집")
        made, other = memory.write("Mina's own"), home.write("보일러는 박유나가 고친다.")
        assert memory.admin.purge_namespace("mina", timedelta(0)).erased == 0
        gone = memory.admin.erase_namespace("서윤/집")
        assert (gone.namespace, gone.erased, gone.ids, gone.copies) == ("서윤/집", 1, (other.id,), ()) and not home.list()
        with pytest.raises(NotFound, match="nothing in namespace"):
            memory.admin.erase_namespace("서윤/집")
        for who, name in ((writer, "mina"), (admin, "joon")):
            with pytest.raises(RemoteError, match=r"right 'admin'|another namespace"):
                rlm.connect(running.url, who).admin.erase_namespace(name)
        with pytest.raises(InvalidInput, match="The namespace"):
            memory.admin.erase_namespace("")
        assert memory.get(made.id) == made


def test_a_namespace_may_have_a_korean_name_and_a_token_a_line_break_at_its_end(tmp_path: Path) -> None:
    book = TokenFile(tmp_path / "tokens")
    secret, _ = book.add(["mina", "서윤", "가" * 60], ["write"])
    with serving(tmp_path / "memory.db", tokens=book, serve_rate=0) as running:
        made = rlm.Memory(running.url, token=secret + "\n", namespace="서윤").write("보일러는 박유나가 고친다.")
        memory = rlm.connect(running.url, secret)
        assert [(r.id, r.namespace) for r in memory.namespace("서윤").list()] == [(made.id, "서윤")]
        assert not memory.namespace("가" * 60).list() and not memory.list()  # as long as a name, three bytes to a letter
        for wrong in ("", "서\ud800"):
            with pytest.raises(InvalidInput, match="The namespace"):
                memory.namespace(wrong)
        with pytest.raises(InvalidInput, match="tokens add"):
            rlm.connect(running.url, "열쇠")


def test_a_conversation_that_begins_anew_takes_the_same_words_and_what_was_rejected_is_named(remote: RemoteMemory) -> None:
    talk = ["Where do I park?", "Behind the hall.", "Thanks."]
    for turn in remote.add_conversation(talk, "june"):
        remote.delete(turn.id)
    assert remote.add_conversation(talk, "june") == []
    for gone in remote.add_conversation(["Behind the hall, I said."], "june"):
        remote.delete(gone.id, restart=True)
    assert [t.text for t in remote.add_conversation(talk, "june")] == talk
    cut = remote.add_conversation([talk[0], talk[2], "Is it free?"], "june", history=True)
    assert [t.text for t in cut] == [talk[0], talk[2], "Is it free?"] and len(remote.list(session="june")) == 5
    remote.reject(remote.write("I live in Oslo.").id)
    told = remote.add_conversation(["I live in Oslo.", "I keep bees."], "july")
    assert [t.text for t in told] == ["I keep bees."] and "rejected" in told.refused[0]


def test_a_refusal_says_which_field_was_wrong_and_which_was_meant(remote: RemoteMemory) -> None:
    made = remote.write("치과는 화요일이야")
    refused: list[tuple[Callable[[], object], str]] = [
        (lambda: remote.list(limit=1), "limit: .*Did you mean 'k'"), (lambda: remote.write("x", metadata=1), "metadata: .*'extra'"),
        (lambda: remote.write_many([{"text": "x", "metadata": 1}]), "extra"), (lambda: remote.feedback(made.id, helped=-1), "helped: "),
        (lambda: remote.write("반쪽 \ud800"), "sent as JSON"), (lambda: remote.write("x", extra={"n": object()}), "sent as JSON"),
        (lambda: remote.delete([made.id]), "An id is given as list"),  # type: ignore[arg-type]
        (lambda: remote.unlink(made.id, 5), "An id is given as int")]  # type: ignore[arg-type]
    for call, said in refused:
        with pytest.raises(InvalidInput, match=said):
            call()
    with pytest.raises(NotFound, match="half a surrogate"):
        remote.get("\ud800")
    [turn] = remote.add_conversation([{"role": "user", "content": "안녕", "created_at": "2026-05-08T09:00:00Z"}])
    assert (turn.text, turn.valid_from) == ("안녕", datetime(2026, 5, 8, 9, tzinfo=UTC))


def test_a_person_confirms_rejects_and_looks_back(remote: RemoteMemory) -> None:
    right, wrong = remote.write("제 여동생은 제주에 살아요."), remote.write("I own a yacht.")
    assert asyncio.run(remote.aaccept(right.id, "제 여동생 소연은 제주에 살아요.")).text == "제 여동생 소연은 제주에 살아요."
    assert remote.reject(wrong.id, "없어요")["reason"] == "없어요" and len(remote.review()["rejections"]) == 1
    found = remote.recall("소연", 1)
    assert [h.id for h in found] == [right.id] and not remote.recall("소연", tags=["none"])
    assert right.id in [m["id"] for m in remote.audit(query="소연")["believed"]]
    with pytest.raises(NotFound):
        remote.accept("nothing")


def test_a_block_leaves_out_the_turns_that_the_prompt_holds_behind_a_server_and_before(remote: RemoteMemory, tmp_path: Path) -> None:
    with rlm.Memory(tmp_path / "own.db", embedder="none") as own:
        for memory in (own, remote):
            memory.add_conversation([{"text": "치과는 화요일이야"}], "월요일")
            assert "화요일" in memory.context("치과는 언제?").text
            assert "화요일" not in memory.context("치과는 언제?", apart_from="월요일").text


def test_a_token_goes_nowhere_that_it_was_not_meant_for() -> None:
    heard = list[str]()

    class Redirecting(BaseHTTPRequestHandler):
        "Sends whoever asks elsewhere."

        def do_GET(self) -> None:
            heard.append(self.path)
            self.send_response(302)
            self.send_header("Location", f"http://localhost:{self.server.server_port}/elsewhere")  # type: ignore[attr-defined]
            self.end_headers()

        def log_message(self, *_: object) -> None:
            "Say nothing."
    with HTTPServer(("127.0.0.1", 0), Redirecting) as server:
        threading.Thread(target=server.handle_request).start()
        with pytest.raises(RemoteError, match="status 302"):
            rlm.connect(f"http://127.0.0.1:{server.server_port}", "secret").get("a")
    assert heard == ["/v1/memories/a"]
    with pytest.raises(InvalidInput, match="unencrypted"):
        rlm.connect("http://memory.example", "secret")
    assert rlm.connect("http://memory.example", "secret", insecure=True)
    for wrong in ("memory.example", "ftp://memory.example", "https://", ""):
        with pytest.raises(InvalidInput, match="is not the address"):
            rlm.connect(wrong)


def test_a_server_that_is_not_there_is_said_to_be() -> None:
    with HTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as free:
        port = free.server_port
    with pytest.raises(RemoteError, match="did not answer"):
        rlm.connect(f"http://127.0.0.1:{port}").list()


@pytest.mark.parametrize("page", [b"<html>Sign in</html>", b'["another program"]', b"\xff"])
def test_what_another_program_answers_is_told_with_a_sentence(page: bytes) -> None:
    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            self.send_response(200)
            self.send_header("Content-Length", str(len(page)))
            self.end_headers()
            self.wfile.write(page)

        do_POST = do_GET

        def log_message(self, *_: object) -> None:
            pass
    with HTTPServer(("127.0.0.1", 0), Page) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        memory = rlm.connect(f"http://127.0.0.1:{server.server_address[1]}")
        for call in (memory.stats, lambda: memory.write("부산에 산다"), lambda: memory.write_many(["The boat is blue."])):
            with pytest.raises(RemoteError, match="not as `rlm serve` does"):
                call()
        server.shutdown()
