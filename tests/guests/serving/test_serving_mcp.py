"""The tools of the Model Context Protocol, by the SDK's own client, over HTTP and over a process's stdin and stdout."""
import asyncio
import contextlib
import json
import os
import sqlite3
import sys
import threading
from pathlib import Path

import httpx2 as httpx
import pytest
from serving import answering as answering_from
from serving import index_of

from ragbed.experiments.guests.serving.api_keys import Keys
from ragbed.experiments.guests.serving.app import create_app
from ragbed.experiments.guests.serving.middleware import GateSettings
from ragbed.experiments.guests.traffic.traffic_runs import runs_of

mcp = pytest.importorskip("mcp", reason="the extra `mcp` is not installed")
from mcp.client.stdio import StdioServerParameters, stdio_client  # noqa: E402
from mcp.client.streamable_http import streamable_http_client  # noqa: E402

QUESTION = "Which country is Oslo the capital of?"
REPLY = "It is Norway [1]."
TABLES = {"log.txt": "A calm morning.\nThe Petrel sailed.\n", "ferries.html": (
    "<title>Ferries</title><table><caption>Ferries</caption><tr><th>vessel</th><th>price</th></tr>"
    "<tr><td>Cormorant</td><td>410</td></tr><tr><td>Petrel</td><td>2,900</td></tr></table>")}
TOOLS = ["ask", "search", "list", "grep", "open", "sql"]


async def called(client, tool, **arguments):
    """What a tool gave, or the text of its error."""
    result = await client.call_tool(tool, arguments)
    return result.content[0].text if result.is_error else result.structured_content


def kept(folder, query):
    """Rows of the traffic."""
    with contextlib.closing(sqlite3.connect(folder / "traffic" / "traffic.sqlite")) as connection:
        return connection.execute(query).fetchall()


async def test_the_tools_have_schemas_and_say_that_documents_are_untrusted(answering):
    url, _ = answering()
    async with mcp.Client(f"{url}/mcp") as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    assert list(tools) == TOOLS
    assert all("untrusted" in tool.description and tool.annotations.read_only_hint for tool in tools.values())
    assert list(tools["search"].input_schema["properties"]) == ["query", "k", "configuration", "where"]
    assert list(tools["open"].input_schema["properties"]) == ["document", "page", "lines", "configuration", "where"]
    assert tools["search"].input_schema["required"] == ["query"]
    assert tools["ask"].output_schema["required"] == ["outcome", "text", "citations", "configuration", "record"]
    assert tools["sql"].output_schema["required"] == ["text", "passages"]


@pytest.mark.parametrize("mode", ["auto", "legacy"])  # today's clients, and those that begin with a handshake
async def test_what_is_found_can_be_opened_and_an_answer_cites_it(answering, mode):
    url, _ = answering(REPLY)
    async with mcp.Client(f"{url}/mcp", mode=mode) as client:
        (found,) = (await called(client, "search", query="Oslo", k=1))["passages"]
        assert (found["title"], found["text"], found["pages"]) == ("oslo.txt", "Oslo is the capital of Norway.", None)
        assert found["url"].startswith(f"{url}/documents/{found['document']}?")
        for name in (found["document"], "oslo.txt"):
            opened = await called(client, "open", document=name)
            assert opened["text"] == "oslo.txt, line 1 of 1:\n[1]\nThis is its end."
            assert [one["text"] for one in opened["passages"]] == [found["text"]]
        answer = await called(client, "ask", question=QUESTION)
    assert (answer["outcome"], answer["text"], answer["configuration"]) == ("answered", REPLY, "direct")
    (cited,) = answer["citations"]
    assert (cited["n"], cited["start"], cited["end"], cited["chunk"]) == (1, 13, 16, found["chunk"])


async def test_a_filter_restricts_both_tools_and_is_stored_with_the_question(answering, tmp_path):
    url, _ = answering(REPLY, REPLY, REPLY)
    async with mcp.Client(f"{url}/mcp") as client:
        found = await called(client, "search", query="capital", where="source = rome*")
        assert [one["title"] for one in found["passages"]] == ["rome.txt"]
        for where in ("source = rome*", {"source": "oslo*"}, None):
            await called(client, "ask", question=QUESTION, where=where)
        assert "did you mean 'source'?" in await called(client, "search", query="Oslo", where="sorce = x")
        assert "did you mean 'source'?" in await called(client, "ask", question=QUESTION, where="sorce = x")
    filters = kept(tmp_path, "SELECT filter FROM turns ORDER BY begun")
    assert filters == [('["source = rome*"]',), ('["source = oslo*"]',), ("[]",)]
    (run,) = runs_of(tmp_path / "traffic")  # one run, whatever the filters
    with contextlib.closing(sqlite3.connect(run / "records.sqlite")) as connection:
        stored = [json.loads(text) for (text,) in connection.execute("SELECT content FROM questions")]
    assert sorted(str(one["tags"]) for one in stored) == [
        "{'where': ['source = oslo*']}", "{'where': ['source = rome*']}", "{}"]


def test_a_client_that_wants_a_stream_of_events_keeps_no_connection(answering):
    url, _ = answering()
    for method in ("GET", "DELETE"):
        with httpx.stream(method, f"{url}/mcp", headers={"Accept": "text/event-stream"}, timeout=10) as refused:
            assert (refused.status_code, refused.headers["Allow"]) == (405, "POST")


async def test_what_goes_wrong_is_an_error_of_the_tool(answering):
    url, _ = answering({"status": 400, "error": {"message": "no such model"}})
    async with mcp.Client(f"{url}/mcp") as client:
        for tool, arguments, said in (
                ("ask", {"question": "  "}, "the question is empty"),
                ("ask", {"question": QUESTION}, "failed (http_400)"),
                ("ask", {"question": QUESTION, "configuration": "gpt-5"}, "configuration 'gpt-5'; available: direct"),
                ("search", {"query": "Oslo", "k": 21}, "less than or equal to 20"),
                ("search", {"query": "Oslo", "where": ["year", 3]}, "where"),
                ("grep", {"pattern": "a(?=b)"}, "RE2 has no look-around"),
                ("sql", {"query": "SELECT 1"}, "the documents contain no tables"),
                ("list", {"configuration": "gpt-5"}, "configuration 'gpt-5'; available: direct"),
                ("open", {"document": "x"}, "there is no document 'x'"),
                ("open", {"document": "../../etc/passwd", "chunk": "y"}, "unknown argument 'chunk'")):
            assert said in await called(client, tool, **arguments)


async def test_documents_are_listed_searched_by_patterns_and_queried(serve, tmp_path):
    with answering_from(serve, index_of(tmp_path, TABLES), tmp_path) as start:
        url, _ = start()
        async with mcp.Client(f"{url}/mcp") as client:
            listed = await called(client, "list", path="ferries*")
            assert listed == {"text": "1 document.\n- ferries.html (Ferries): 82 characters", "passages": []}
            found = await client.call_tool("grep", {"pattern": "sailed"})
            assert found.content[0].text == (
                "1 matching line in log.txt (1).\nlog.txt, line 2:\n[1]\nThe Petrel sailed.")
            (passage,) = found.structured_content["passages"]
            assert (passage["n"], passage["title"], passage["text"]) == (1, "log.txt", "The Petrel sailed.")
            assert "<mark" in httpx.get(passage["url"]).text
            rows = await called(client, "sql", query="SELECT vessel FROM ferries WHERE price > 500")
            assert rows["text"].startswith("vessel\nPetrel\n")
            assert "Petrel" in rows["passages"][0]["text"]
            among = await called(client, "list", where="source = log*")
            assert among["text"] == "1 document.\n- log.txt: 35 characters"
            assert "there is no document" in await called(client, "open", document="ferries.html", where="page > 9")


async def test_a_tool_whose_package_is_missing_is_left_out(answering, monkeypatch, caplog):
    monkeypatch.setattr("ragbed.documents.errors.find_spec", lambda name: None if name in ("re2", "duckdb") else name)
    url, _ = answering()
    async with mcp.Client(f"{url}/mcp") as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == ["ask", "search", "list", "open"]
    assert [record.getMessage() for record in caplog.records if record.name == "ragbed"] == [
        f"MCP clients do not get the tool {tool}: {package} is not installed; run: pip install 'ragbed[tools]'"
        for tool, package in (("grep", "re2"), ("sql", "duckdb"))]


@pytest.mark.slow
async def test_expensive_calls_of_many_clients_block_nobody(serve, tmp_path):
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1e9) SELECT max(i) FROM n"
    with answering_from(serve, index_of(tmp_path, TABLES), tmp_path) as start:
        url, _ = start(REPLY)
        async with mcp.Client(f"{url}/mcp") as hostile, mcp.Client(f"{url}/mcp") as client:
            await called(client, "sql", query="SELECT 1")
            queries = [asyncio.create_task(called(hostile, "sql", query=endless)) for _ in range(12)]
            while sum(call.done() for call in queries) < 2:
                await asyncio.sleep(0.01)
            assert "too long" in await called(client, "open", document="x" * 900_000)
            assert "the arguments are too long" in await called(client, "list", path=["x"] * 100_000)
            assert (await called(client, "search", query="Petrel"))["passages"]
            assert (await called(client, "grep", pattern="(e?){99}(.{0,30}t){20}"))["text"] == "No line matches."
            assert (await called(client, "list"))["text"].startswith("2 documents.")
            assert (await called(client, "ask", question="Which vessel sailed?"))["outcome"] == "answered"
            assert [call.result() for call in queries if call.done()] == [
                "sql: too many calls of this tool are waiting; try again in a few seconds"] * 2
            for call in queries:
                call.cancel()
            await asyncio.gather(*queries, return_exceptions=True)


async def test_a_client_that_leaves_ends_its_question(answering, tmp_path):
    hold = threading.Event()
    url, model = answering({"text": REPLY, "hold": hold})
    async with mcp.Client(f"{url}/mcp") as client:
        asking = asyncio.create_task(client.call_tool("ask", {"question": QUESTION}))
        while not model.requests:
            await asyncio.sleep(0.01)
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)
    ended = []
    while not ended:
        await asyncio.sleep(0.01)
        ended = kept(tmp_path, "SELECT outcome FROM turns WHERE ended IS NOT NULL")
    hold.set()
    assert ended == [("error",)]


async def test_the_tools_want_the_same_keys_and_know_whose_they_are(answering, tmp_path):
    gate = GateSettings(Keys(["ann ann-key-0123456789"]))
    url, _ = answering(REPLY, options={"make": lambda serving: create_app(serving, gate)})
    assert httpx.post(f"{url}/mcp", json={}).status_code == 401
    async with (httpx.AsyncClient(headers={"Authorization": "Bearer ann-key-0123456789"}) as http,
                mcp.Client(streamable_http_client(f"{url}/mcp", http_client=http)) as client):
        answer = await called(client, "ask", question=QUESTION)
    assert kept(tmp_path, "SELECT record, owner FROM turns") == [(answer["record"], "ann")]


@pytest.mark.slow
async def test_a_process_speaks_the_protocol_on_stdout_and_nothing_else(serve, capitals, tmp_path):
    model = serve([REPLY])
    arguments = ["-m", "ragbed", "serve", str(capitals), "--mcp", "--model", f"{model.url}#m",
                 "--reasoning", "direct", "--retriever", "bm25", "--traffic", str(tmp_path / "traffic")]
    command = StdioServerParameters(command=sys.executable, args=arguments, cwd=tmp_path,
                                    env={**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent)})
    with open(tmp_path / "log", "w") as log:
        async with mcp.Client(stdio_client(command, errlog=log)) as client:
            assert [tool.name for tool in (await client.list_tools()).tools] == TOOLS
            answer = await called(client, "ask", question=QUESTION)
    assert (answer["text"], answer["citations"][0]["title"], answer["citations"][0]["url"]) == (REPLY, "oslo.txt", "")
    assert (tmp_path / "log").read_text() == ""


def test_without_the_package_the_extra_is_named(ragbed, monkeypatch, capitals):
    monkeypatch.setattr("ragbed.documents.errors.find_spec", lambda name: None if name == "mcp" else name)
    status, _, err = ragbed("serve", capitals, "--mcp")
    assert status == 2
    assert "mcp is not installed; run: pip install 'ragbed[mcp]'" in err
