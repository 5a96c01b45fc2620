"""Who may see what, at every route of a server: a key reaches only the documents that the rule allows."""
import json
import re
import sqlite3
import subprocess
import sys
import threading
from itertools import cycle
from types import SimpleNamespace

import pytest
import yaml
from groups import ANN, BOB, EVE, FIELDS, LINES, RULE, SECRETS, SEES, bearer, build, call, events, guarded, repeat
from patience import SECONDS
from streamed import as_asked

from ragbed.documents import BenchmarkError, SettingsError
from ragbed.experiments.guests.access.access import Access
from ragbed.experiments.guests.access.allowed_index import AllowedIndex
from ragbed.experiments.guests.serving.api_keys import Keys
from ragbed.experiments.guests.serving.configurations import read_target
from ragbed.retrieval import Index
from ragbed.retrieval.filters.filtered_collection import filter_collection
from ragbed.retrieval.filters.metadata import read_metadata

QUESTION = "Which numbers and codes of the falcon project are secret?"


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    return build(tmp_path_factory.mktemp("company"))


def seen(text):
    # ids are hexadecimal, and may have the digits of a secret by chance
    return {name for name, secret in SECRETS.items() if re.search(rf"(?<![0-9a-f]){secret}(?![0-9a-f])", text)}


def routes(client, key, index):
    """What each route answers to a key, as text."""
    chat = {"model": "direct", "messages": [{"role": "user", "content": QUESTION}]}
    opened = Index.open(index)
    documents = {document.source: document.id for document in opened.documents()}

    def get(path):
        return client.get(path, headers=bearer(key)).text

    def post(path, body):
        return client.post(path, json=body, headers=bearer(key)).text

    yield "chat", post("/v1/chat/completions", {**chat, "citations": "both"})
    yield "streamed chat", post("/v1/chat/completions", {**chat, "stream": True})
    yield "Open WebUI", post("/openwebui/v1/chat/completions", {**chat, "stream": True})
    yield "responses", post("/v1/responses", {"model": "direct", "input": QUESTION})
    yield "page", post("/api/ask", {"question": QUESTION})
    yield "where", post("/api/ask", {"question": QUESTION, "where": "source = * or groups = hr or groups = finance"})
    yield "ask", call(client, key, "ask", question=QUESTION)
    yield "search", call(client, key, "search", query=QUESTION, k=20)
    yield "list", call(client, key, "list")
    yield "grep", call(client, key, "grep", pattern="[0-9]{4}|noon")
    yield "sql", call(client, key, "sql", query="SELECT * FROM salaries_falcon")
    yield "tables", call(client, key, "sql", query="SELECT * FROM tables")
    for name, id in documents.items():
        yield f"open {name}", call(client, key, "open", document=name)
        yield f"open id of {name}", call(client, key, "open", document=id)
        yield f"document {name}", get(f"/documents/{id}")
        yield f"span of {name}", get(f"/documents/{id}?chunk=plain:0-90")
    for row in range(len(opened.chunks)):
        chunk = opened.chunks[row]
        yield f"chunk {row}", get(f"/documents/{chunk.document}?chunk={chunk.id}")


@pytest.mark.slow
@pytest.mark.parametrize("key", [ANN, BOB, EVE])
@pytest.mark.parametrize("retriever", ["bm25", "dense", "fused"])
def test_no_route_shows_what_the_rule_does_not_allow(serve, index, tmp_path, key, retriever):
    with guarded(index, serve(repeat), tmp_path / "t", retriever=retriever) as client:
        found = {name: seen(text) for name, text in routes(client, key, index)}
    assert set().union(*found.values()) <= SEES[key]
    assert found["chat"] == found["page"] == found["search"] == SEES[key]
    assert (found["sql"], found["grep"]) == (SEES[key] & {"salaries.html"}, SEES[key])


def test_counts_names_and_errors_do_not_tell_what_there_is(serve, index, tmp_path):
    with guarded(index, serve(repeat), tmp_path / "t") as client:
        assert "1 document." in call(client, EVE, "list")
        unknown, hidden = (call(client, EVE, "open", document=name) for name in ("budgat.txt", "budget.txt"))
        assert unknown.replace("budgat.txt", "") == hidden.replace("budget.txt", "")
        assert "contain no tables" in call(client, EVE, "sql", query="SELECT * FROM tables")
        asked = {"question": QUESTION, "where": "groups = hr"}
        refused = client.post("/api/ask", json=asked, headers=bearer(EVE))
        assert refused.status_code == 400
        assert "unknown field 'groups'" in refused.text
        assert "budget" not in call(client, EVE, "open", document="budge.txt")
        ids = {one.source: one.id for one in Index.open(index).documents()}
        told, none = (client.get(f"/documents/{id}", headers=bearer(EVE)) for id in (ids["budget.txt"], "0" * 16))
        assert (told.status_code, told.text) == (none.status_code, none.text)


@pytest.mark.slow
def test_a_thread_is_withheld_when_its_documents_are(serve, index, tmp_path):
    model, folder = serve(repeat), tmp_path / "t"
    with guarded(index, model, folder) as client:
        begun = events(client.post("/api/ask", json={"question": QUESTION}, headers=bearer(ANN)))[0]
        response = client.post("/v1/responses", json={"model": "direct", "input": QUESTION}, headers=bearer(ANN)).json()
        thread = f"/api/threads/{begun['thread']}"
        assert "4711" in client.get(thread, headers=bearer(ANN)).text
        assert client.get(thread, headers=bearer(BOB)).status_code == 404  # another's
        stolen = {"model": "direct", "input": "And?", "previous_response_id": response["id"]}
        assert client.post("/v1/responses", json=stolen, headers=bearer(BOB)).status_code == 404
        own = {"question": "And the code?", "thread": begun["thread"]}
        assert client.post("/api/ask", json=own, headers=bearer(BOB)).status_code == 404
    revoked = [f"ann {ANN} groups=staff", *LINES[1:]]
    with guarded(index, model, folder, keys=revoked) as client:
        told = client.get(thread, headers=bearer(ANN)).json()["turns"][0]
        assert told["question"] == QUESTION
        assert "4711" not in str(told)
        assert told["answer"]["text"] == "This answer is based on documents that your key may no longer read."
        asked = client.post("/api/ask", json=own, headers=bearer(ANN))
        assert asked.status_code == 404
        assert "this conversation is based on documents that your key may no longer read; start a new one" in asked.text
        item = {"model": "direct", "input": [{"type": "item_reference", "id": response["output"][-1]["id"]},
                                            {"role": "user", "content": "And?"}]}
        for body in (stolen, item):
            assert client.post("/v1/responses", json=body, headers=bearer(ANN)).status_code == 404
        assert events(client.post("/api/ask", json={"question": QUESTION}, headers=bearer(ANN)))[-1]["sources"]
    with guarded(index, model, folder) as client:  # given back
        assert "4711" in client.get(thread, headers=bearer(ANN)).text
        last = events(client.post("/api/ask", json=own, headers=bearer(ANN)))[-1]
        assert last["outcome"] == "answered"
        assert "basis" not in last


@pytest.mark.slow
def test_a_document_that_changes_hands_is_withheld_from_later_turns_too(serve, tmp_path):
    """A later answer may repeat an earlier one, so what it is based on includes that."""
    index, model = build(tmp_path), serve(lambda body: "The budget is 4711 [1].")
    with guarded(index, model, tmp_path / "t") as client:
        first = client.post("/v1/responses", json={"model": "direct", "input": "Which budget?"},
                            headers=bearer(ANN)).json()
        second = client.post("/v1/responses", headers=bearer(ANN), json={
            "model": "direct", "input": "noon", "previous_response_id": first["id"],
            "where": "source = canteen.txt"}).json()
        assert [one["name"] for one in second["ragbed"]["evidence"]] == ["canteen.txt"]
        build(tmp_path, {**FIELDS, "budget.txt": {"groups": "board"}})
        third = {"model": "direct", "input": "And?", "previous_response_id": second["id"]}
        waited = threading.Event()
        for _ in range(100):  # the server looks for a new index every three seconds
            if client.post("/v1/responses", json=third, headers=bearer(ANN)).status_code == 404:
                break
            waited.wait(0.1)
        else:
            raise AssertionError("the new index was not used")
        assert "4711" not in call(client, ANN, "grep", pattern="budget")


def test_a_client_s_filter_narrows_and_never_widens(serve, index, tmp_path):
    with guarded(index, serve(repeat), tmp_path / "t", where=("source = *.txt",)) as client:
        for where in ("source = *", "public = true or groups = finance, board", "source = budget.txt or source = *",
                      {"or": [{"source": "*"}, {"source": "salaries.html"}]}, "groups = *"):
            body = {"model": "direct", "messages": [{"role": "user", "content": QUESTION}], "where": where}
            answer = client.post("/v1/chat/completions", json=body, headers=bearer(ANN))
            assert answer.status_code == 200, where
            assert seen(answer.text) <= SEES[ANN], where
        assert "salaries" not in call(client, BOB, "list")  # the server's own filter holds, too


@pytest.mark.parametrize("vectors", ["flat", "hnsw", "rabitq", {"kind": "flat", "codes": "sq8"},
                                     {"kind": "hnsw", "codes": "sq8"}])
def test_the_search_of_every_kind_of_vectors_is_among_what_is_allowed(tmp_path, vectors):
    from ragbed.retrieval.index_settings import IndexSettings

    index = Index.open(build(tmp_path, settings=IndexSettings(vectors=vectors)))
    access = Access([RULE], Keys(LINES).claims)
    for owner, key in (("ann", ANN), ("bob", BOB), ("eve", EVE)):
        view = access.view(index, owner)
        (hits,) = view.search([QUESTION], 10)
        assert {view.source_of(hit.chunk.document) for hit in hits} == SEES[key]
        assert len(view.chunks) == len(list(view.texts())) == len(list(view.metadata())) == len(SEES[key])
        assert [view.chunks.row(chunk.id) for chunk in view.chunks] == list(range(len(view.chunks)))
        narrowed = filter_collection(view, ("source = canteen.txt",))
        assert [hits[0].chunk.content for hits in [view.search([QUESTION], 3, "source = canteen.txt")[0]]] == [
            chunk.content for row, chunk in enumerate(view.chunks) if narrowed.among is None or narrowed.among[row]]


def test_words_weigh_as_if_other_documents_did_not_exist(serve, index, tmp_path):
    """Otherwise scores would tell how frequent a word is in documents that nobody may see."""
    from ragbed.retrieval.retrievers.bm25 import Bm25
    from ragbed.retrieval.types import RerankerDeps

    whole = Index.open(index)
    alone = build(tmp_path, {"canteen.txt": {}})
    view = Access(["source = canteen.txt"], Keys(LINES).claims).view(whole, "eve")
    assert isinstance(view, AllowedIndex)
    only = AllowedIndex(Index.open(alone), frozenset(chunk.document for chunk in view.chunks))
    scores = [Bm25().open(one, RerankerDeps()).search(["falcon noon"], 5)[0][0].score for one in (view, only)]
    whole_score = Bm25().open(whole, RerankerDeps()).search(["noon"], 5)[0][0].score
    assert scores[0] == scores[1] != whole_score


def checked(index, rule, lines):
    keys = Keys(lines)
    return Access([rule], keys.claims).check([SimpleNamespace(index=Index.open(index), tools=None)], keys.owners)


@pytest.mark.parametrize(("rule", "lines", "said"), [
    ("team in key.groups", LINES, "no document of .* has the field 'team'"),
    ("grops in key.groups", LINES, "did you mean 'groups'"),
    ("groups in key.group", LINES, "no key has the claim 'group'; did you mean 'groups'"),
    ("groups in key.groups", [], "no key has the claim 'groups'; write it behind a key in the file of --keys")])
def test_a_rule_that_cannot_take_effect_is_named_at_the_start(index, rule, lines, said):
    assert re.search(said, checked(index, rule, lines)[0][0])


def test_the_start_says_which_documents_no_key_may_read(index):
    assert checked(index, RULE, LINES) == ([], [
        "no key may read 3 of 6 documents, 1 of them because groups is malformed, as in broken.txt"])


def test_without_a_rule_everything_is_as_before(serve, index, tmp_path):
    with guarded(index, serve(repeat), tmp_path / "t", rule=None) as client:
        answer = client.post("/v1/chat/completions", headers=bearer(EVE), json={
            "model": "direct", "messages": [{"role": "user", "content": QUESTION}]})
        assert seen(answer.text) == set(SECRETS)


def test_keys_that_see_the_same_share_their_search(serve, index, tmp_path):
    access = Access([RULE], Keys([*LINES, "mia mia-key-0123456789"]).claims)
    opened = Index.open(index)
    assert access.view(opened, "eve") is access.view(opened, "mia") is access.view(opened, "nobody")
    assert access.view(opened, "ann") is not access.view(opened, "eve")
    assert len({access.view(opened, one).content for one in ("ann", "bob", "eve")} | {opened.content}) == 4
    everything = Access(["source = *"], Keys(LINES).claims)
    assert everything.view(opened, "eve") is opened



@pytest.mark.slow
def test_an_agent_s_tools_reach_what_its_key_may_read(serve, index, tmp_path):
    """Each key's agent lists, greps and queries everything; after any change of what it sees, that is withheld."""
    turns = cycle(["list", 'grep: {"pattern": "[0-9]{4}"}', 'sql: {"query": "FROM salaries_falcon"}', "finish",
                   "<Answer>done [1]</Answer>"])
    model = serve(as_asked(lambda body: next(turns)))
    agent = {"kind": "agent", "tools": ["list", "grep", "sql"], "protocol": "text"}
    with guarded(index, model, tmp_path / "t", reasoning=agent) as client:
        for key in (ANN, BOB, EVE):
            told = client.post("/api/ask", json={"question": QUESTION}, headers=bearer(key))
            steps = [one for one in events(told)[-1]["steps"] if one["kind"] == "tool"]
            assert [one["tool"] for one in steps] == ["list", "grep", "sql"]
            assert seen(told.text) <= SEES[key]
            assert steps[0]["text"].startswith(f"{len(SEES[key])} document")
        thread = f"/api/threads/{events(told)[0]['thread']}"
        assert "done" in client.get(thread, headers=bearer(EVE)).text
    with guarded(index, model, tmp_path / "t", rule=f"({RULE}) and source = *.txt or key.name == bob") as client:
        assert "done" in client.get(thread, headers=bearer(EVE)).text  # eve sees the same as before
    with guarded(index, model, tmp_path / "t", rule=f"{RULE} or source = salaries.html") as client:
        assert "may no longer read" in client.get(thread, headers=bearer(EVE)).text


def test_a_thread_with_an_answer_that_a_kill_interrupted_cannot_go_on_and_says_why(serve, index, tmp_path):
    model, folder = serve(repeat), tmp_path / "t"
    with guarded(index, model, folder) as client:
        begun = events(client.post("/api/ask", json={"question": QUESTION}, headers=bearer(ANN)))[0]
    with sqlite3.connect(folder / "traffic.sqlite") as database:  # as it is after `kill -9`
        database.execute("UPDATE turns SET shown = NULL")
    with guarded(index, model, folder) as client:
        further = client.post("/api/ask", json={"question": "And?", "thread": begun["thread"]}, headers=bearer(ANN))
    assert further.status_code == 404
    assert further.json()["error"]["message"] == (
        "this conversation has an answer that did not end, so what it is based on is unknown; start a new one")


@pytest.mark.slow
@pytest.mark.parametrize("retriever", [
    {"kind": "expanded", "of": "bm25"}, {"kind": "mmr", "of": "dense"}, {"kind": "external", "factory": "FILE:honest"},
    {"kind": "external", "factory": "FILE:cheating"}, {"kind": "external", "factory": "FILE:lang"}])
def test_retrievers_get_only_what_is_allowed(serve, index, tmp_path, retriever):
    """Your own retriever is given the allowed chunks. If it finds others anyway, the question fails without them."""
    (tmp_path / "mine.py").write_text(OWN.format(index=str(index)))
    given = {name: str(value).replace("FILE", str(tmp_path / "mine.py")) for name, value in retriever.items()}
    with guarded(index, serve(repeat), tmp_path / "t", retriever=given) as client:
        for key in (ANN, BOB, EVE):
            body = {"model": "direct", "messages": [{"role": "user", "content": QUESTION}]}
            told = client.post("/v1/chat/completions", headers=bearer(key), json=body)
            found = call(client, key, "search", query=QUESTION)
            assert seen(told.text) | seen(found) <= SEES[key]
            refused = given["kind"] == "external" and "honest" not in given["factory"]
            assert told.status_code == (502 if refused else 200)


OWN = '''
from ragbed.retrieval import Index
from ragbed.retrieval.types import Hit

class All:
    def __init__(self, chunks):
        self.chunks = chunks
    def search(self, queries, k):
        return [[Hit(one, 1.0, rank, "mine") for rank, one in enumerate(self.chunks, 1)] for _ in queries]

def honest(chunks):
    return All(chunks)

def cheating(chunks):
    return All(list(Index.open({index!r}).chunks))

def lang(chunks):
    from langchain_core.documents import Document
    from langchain_core.retrievers import BaseRetriever

    class Whole(BaseRetriever):
        def _get_relevant_documents(self, query, *, run_manager):
            return [Document(one.content) for one in Index.open({index!r}).chunks]

    return Whole()
'''


def test_a_settings_file_has_the_rule(serve, index, tmp_path):
    (tmp_path / "q.jsonl").write_text('{"question": "When?", "answer": "noon"}\n')
    content = {"name": "x", "models": f"{serve(repeat).url}#m", "reasoning": "direct", "allow": RULE,
               "benchmark": {"kind": "jsonl", "path": str(tmp_path / "q.jsonl")}, "conditions": "retrieved",
               "retriever": {"kind": "bm25", "index": str(index)}}
    path = tmp_path / "x.yaml"
    path.write_text(yaml.safe_dump(content))
    assert [one.allow for one in read_target(path, {})] == [(RULE,)]
    path.write_text(yaml.safe_dump({**content, "allow": "groups != x"}))
    with pytest.raises(SettingsError, match=r"allow: .*no negation"):
        read_target(path, {})


def test_groups_may_be_a_list_in_json_lines(tmp_path):
    path = tmp_path / "about.jsonl"
    path.write_text('{"source": "a.txt", "groups": ["finance", "Domain Users"]}\n{"source": "b.txt", "groups": []}\n')
    assert read_metadata(path) == {"a.txt": {"groups": "finance, Domain Users"}, "b.txt": {}}
    path.write_text('{"source": "a.txt", "groups": ["a,b"]}\n')
    with pytest.raises(BenchmarkError, match="expected text"):
        read_metadata(path)


@pytest.mark.slow
def test_a_client_over_stdio_has_the_rights_of_the_key_that_serve_names(serve, index, tmp_path, ragbed):
    (tmp_path / "keys").write_text("\n".join(LINES))
    options = ["serve", str(index), "--mcp", "--model", f"{serve(repeat).url}#m", "--retriever", "bm25", "--allow",
               RULE, "--keys", str(tmp_path / "keys"), "--traffic", str(tmp_path / "t")]
    ragbed.refuses(*options, says=["--as", "there is no such key"])
    ragbed.refuses(*options, "--as", "nobody", says=["--as nobody", "there is no such key"])
    call = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "list", "arguments": {}}}
    hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}}
    sent = "".join(json.dumps(one) + "\n" for one in (
        hello, {"jsonrpc": "2.0", "method": "notifications/initialized"}, call))
    with subprocess.Popen([sys.executable, "-m", "ragbed", *options, "--as", "ann"], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, text=True) as process:
        process.stdin.write(sent)
        process.stdin.flush()
        answers = [json.loads(process.stdout.readline()) for _ in range(2)]
        process.stdin.close()
        assert process.wait(SECONDS) == 0
    assert "2 documents" in str(answers[1])
    assert "salaries" not in str(answers[1])
