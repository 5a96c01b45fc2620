"""Deletion: after it, the text is in no file of the server and in no dump of its database."""
import random
import subprocess
from pathlib import Path

import httpx
import psycopg
import pytest
from patience import SECONDS
from postgres_server import postgres_server
from replicas import events, server

from ragbed.retrieval.index import Index

KEYS = "ann ann-has-a-long-key-1\nbob bob-has-a-long-key-2\nadm adm-has-a-long-key-3 admin=true\n"
ANN, BOB, ADMIN = ({"Authorization": f"Bearer {line.split()[1]}"} for line in KEYS.splitlines())


@pytest.fixture(scope="module")
def postgres():
    with postgres_server() as (url, _):
        yield url


@pytest.fixture(params=["folder", "postgres"])
def store(request, tmp_path):
    """Where traffic is stored, the option that says so, and a function that counts a text in its files."""
    if request.param == "folder":
        folder = tmp_path / "traffic"
        yield folder, "--traffic", lambda text: sum(
            text.encode() in file.read_bytes() for file in folder.rglob("*") if file.is_file())
        return
    url, name = request.getfixturevalue("postgres"), f"d{random.randrange(10**9)}"
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    url = url.replace("/postgres", f"/{name}")
    dump = next(Path("/usr/lib/postgresql").glob("*/bin/pg_dump"))

    def count(text):
        content = subprocess.run([dump, url], capture_output=True, check=True).stdout
        return content.count(text.encode()) + content.count(text.encode().hex().encode())  # bytea is written in hex

    yield url, "--threads", count


def ask(url, question, headers, thread=None):
    given = {"question": question, **({"thread": thread} if thread else {})}
    return events(httpx.post(f"{url}/api/ask", json=given, headers=headers, timeout=SECONDS))[-1]


def says(body):
    text = body["messages"][-1]["content"]
    return "REWRITTEN by CANARY-ANN?" if "<query>" in text else "<Answer>It is CANARY-MODEL [1]</Answer>"


@pytest.mark.slow
def test_what_is_forgotten_is_in_no_file_and_what_is_not_chosen_stays(serve, capitals, tmp_path, store, ragbed):
    place, option, count = store
    (tmp_path / "keys").write_text(KEYS)
    with server(capitals, serve(says).url, option, place, "--keys", tmp_path / "keys") as (_, url):
        first = ask(url, "CANARY-ANN: where is Oslo?", ANN)
        ask(url, "And CANARY-ANN?", ANN, first["thread"])
        alone = ask(url, "CANARY-ONE: where?", ANN)
        kept = ask(url, "CANARY-BOB: where is Rome?", BOB)
        httpx.post(f"{url}/api/feedback", json={"record": kept["record"], "thumb": "down", "comment": "CANARY-SAID"},
                   headers=BOB)
        httpx.post(f"{url}/v1/responses", json={"model": "direct", "input": "CANARY-ANN?"}, headers=ANN)
        assert all(count(f"CANARY-{name}") for name in ("ANN", "ONE", "BOB", "SAID"))
        # no key deletes what belongs to another
        for path in (f"threads/{first['thread']}", "threads/x' OR 1=1 --", "users/ann", "documents/any"):
            assert httpx.delete(f"{url}/api/{path}", headers=BOB).status_code in (403, 404)
        assert httpx.delete(f"{url}/api/users/ann", headers={}).status_code == 401
        assert httpx.delete(f"{url}/api/users/ann' OR '1'='1", headers=ADMIN).json() == {"answers": 0, "threads": 0}
        assert httpx.delete(f"{url}/api/threads/{alone['thread']}", headers=ANN).json() == {"answers": 1, "threads": 1}
        assert (count("CANARY-ONE"), count("CANARY-ANN") > 0) == (0, True)
        assert httpx.delete(f"{url}/api/users/ann", headers=ADMIN).json() == {"answers": 3, "threads": 1}
        assert (count("CANARY-ANN"), count("CANARY-BOB") > 0, count("CANARY-SAID") > 0) == (0, True, True)
        assert ask(url, "CANARY-BOB: again?", BOB, kept["thread"])["record"] == f"{kept['thread']}-1"
        if option == "--traffic":
            status, _, err = ragbed("forget", place, "--user", "bob")
            assert (status, "a server uses this folder" in err) == (2, True)
    status, out, _ = ragbed("forget", place, "--user", "bob")
    assert (status, out) == (0, "forgot 2 answers and 1 thread; their number, day and reason stay\n")
    assert count("CANARY") == 0


@pytest.mark.slow
def test_a_forgotten_document_leaves_the_index_and_the_conversations_that_saw_it(serve, tmp_path, store, ragbed):
    place, option, count = store
    pages = tmp_path / "pages"
    pages.mkdir()
    (pages / "oslo.txt").write_text("Oslo is in CANARY-LAND.")
    (pages / "rome.txt").write_text("Rome is in Italy.")
    ragbed("index", pages, "--out", tmp_path / "index")
    index = Index.open(tmp_path / "index")
    document = next(one.document for one in index.chunks if "CANARY" in one.content)
    with server(tmp_path / "index", serve(lambda body: "<Answer>Here [1]</Answer>").url, option, place,
                "-k", 1) as (_, url):
        ask(url, "Where is Oslo?", {})
        ask(url, "Where is Rome?", {})
        if option == "--traffic":
            ragbed.refuses("forget", place, "--document", "oslo.txt", "--index", tmp_path / "index",
                           says=["a server uses this folder; stop it"])
    assert count("CANARY-LAND")
    ragbed.refuses("forget", place, "--document", "osl.txt", "--index", tmp_path / "index",
                   says=["no document 'osl.txt'; give its id, as in the `evidence` of answers, or the path of its"])
    assert document in {one.document for one in Index.open(tmp_path / "index").chunks}
    status, out, err = ragbed("forget", place, "--document", "oslo.txt")
    assert (status, out[:16]) == (0, "forgot 0 answers")
    assert "no stored answer is of what you named; check it: --document takes an id" in err
    status, out, _ = ragbed("forget", place, "--document", "oslo.txt", "--index", tmp_path / "index")
    assert (status, out) == (0, "forgot 1 answer and 1 thread; their number, day and reason stay; oslo.txt was removed "
                                f"from {tmp_path / 'index'}: delete the file itself, or it comes back\n")
    assert count("CANARY-LAND") == 0
    assert [one.content for one in Index.open(tmp_path / "index").chunks] == ["Rome is in Italy."]
    assert not any(b"CANARY-LAND" in file.read_bytes() for file in (tmp_path / "index").rglob("*") if file.is_file())
    status, _, err = ragbed("forget", place, "--document", "' OR 1=1", "--index", tmp_path / "index")
    assert (status, err.count("\n")) == (2, 1)
    status, out, _ = ragbed("forget", place, "--keep-days", 0)
    assert (status, out) == (0, "forgot 1 answer and 1 thread; their number, day and reason stay\n")
    assert count("Where is Rome") == 0


def test_forget_says_what_it_needs(ragbed, tmp_path):
    for options, said in (((tmp_path,), "name what to forget"), ((tmp_path, "--user", "ann"), "holds no traffic"),
                          ((tmp_path, "--user", "ann", "--index", tmp_path), "--index has no effect"),
                          (("postgres://u:secret@127.0.0.1:1/x", "--user", "ann"), "PostgreSQL on 127.0.0.1")):
        status, _, err = ragbed("forget", *options)
        assert (status, err.count("\n"), said in err, "secret" in err) == (2, 1, True, False), err
