"""Services that answer chat completions with citations as pipelines: ragbed's own, and the formats of others."""
from pathlib import Path

import pytest
import yaml
from serving import answering, index_of

from ragbed.experiments import RunFolder
from ragbed.strategies import REFUSAL

PAGES = {"oslo.txt": "Oslo is the capital of Norway, on a fjord of its own name.",
         "rome.txt": "Rome is the capital of Italy, on the river Tiber, since 1871.",
         "bern.txt": "Bern is the seat of the Swiss government, on the river Aare."}
QUESTION = "What is the capital of Norway?"


@pytest.fixture
def ask(town, ragbed, monkeypatch):
    """Asks a service one question, whose gold is the page on Oslo, and returns the result."""
    monkeypatch.chdir(town.folder)
    benchmark = town.own({"id": "q", "question": QUESTION, "answer": "Oslo", "gold_documents": ["oslo.txt"]},
                         pages=PAGES)

    def start(url, **settings):
        Path("town.yaml").write_text(yaml.safe_dump({
            "benchmark": benchmark, "pipelines": [{
                "kind": "openai", "name": "service", "url": url, **settings}],
            "calls": {"calls": {"attempts": 1}}}))
        status, _, err = ragbed("run", "town.yaml")
        assert status in (0, 1), err
        folder = RunFolder.existing(town.run)
        try:
            record, = folder.records(traces=True)
        finally:
            folder.close()
        return record.model_dump()["result"]

    return start


@pytest.mark.slow
def test_ragbeds_own_server_says_what_it_read_and_what_it_cites(ask, serve, tmp_path):
    (tmp_path / "served").mkdir()
    with answering(serve, index_of(tmp_path / "served", PAGES), tmp_path) as start:
        url, _ = start("<Answer>The capital is Oslo [2], not Rome [1][7].</Answer>", k=3)
        one = ask(f"{url}/v1", model="direct")
    found = {passage["source"]: passage for passage in one["evidence"]}
    assert {name: passage["gold"] is not None for name, passage in found.items()} == {
        "oslo.txt": True, "rome.txt": False}
    assert one["cited"] == (2, 1)
    assert one["invalid_citations"] == (7,)
    assert (one["usage"]["prompt_tokens"], one["usage"]["completion_tokens"]) == (700, 12)


def test_ragbeds_own_refusal_is_a_refusal(ask, serve, tmp_path):
    (tmp_path / "served").mkdir()
    with answering(serve, index_of(tmp_path / "served", PAGES), tmp_path) as start:
        url, _ = start(f"<Answer>{REFUSAL}</Answer>")
        assert ask(f"{url}/v1/chat/completions", model="direct")["outcome"] == "refused"


TEXT = "It is Oslo ([wiki](https://o)), on a fjord."
OF_WEB = {"type": "url_citation", "url_citation": {"start_index": 11, "end_index": 29, "url": "https://o"}}
OF_FILES = [{"type": "file_citation", "index": 9, "file_id": "file-1", "filename": name} for name in PAGES]
MARKED = "Oslo [4], and not Rome [1, 4]."
OF_MARKS = [{"type": "url_citation", "start_index": at, "end_index": to, "url": page, "cited_text": PAGES[page]}
            for at, to, page in [(5, 8, "oslo.txt"), (23, 29, "rome.txt"), (23, 29, "oslo.txt")]]
RESULTS = [{"title": "Rome", "url": "rome.txt", "snippet": PAGES["rome.txt"]},
           {"title": "Oslo", "url": "oslo.txt", "snippet": PAGES["oslo.txt"]}]
OF_AZURE = {"intent": "[]", "citations": [
    {"content": PAGES[page], "title": None, "url": None, "filepath": page, "chunk_id": "0"} for page in PAGES]}


@pytest.mark.parametrize(("message", "extra", "said", "cited", "read"), [
    pytest.param({"content": TEXT, "annotations": [OF_WEB]}, {}, TEXT, (1,), [(1, False)], id="openai and openrouter"),
    pytest.param({"content": "It is Oslo.", "annotations": OF_FILES[:2]}, {}, "It is Oslo.", (1, 2),
                 [(1, True), (2, False)], id="files"),
    pytest.param({"content": MARKED, "annotations": OF_MARKS}, {}, "Oslo [1], and not Rome [2, 1].", (1, 2),
                 [(1, True), (2, False)], id="numbers of the service's own"),
    pytest.param({"content": "Oslo [2]."}, {"search_results": RESULTS, "citations": ["rome.txt", "oslo.txt"]},
                 "Oslo [2].", (2,), [(1, False), (2, True)], id="perplexity"),
    pytest.param({"content": "Oslo [2]."}, {"citations": ["rome.txt", "oslo.txt"]}, "Oslo [2].", (2,),
                 [(1, False), (2, True)], id="perplexity, URLs alone"),
    pytest.param({"content": "Oslo [doc1].", "context": OF_AZURE}, {}, "Oslo [1].", (1,),
                 [(1, True), (2, False), (3, False)], id="azure"),
    pytest.param({"content": [{"type": "text", "text": "Oslo"}, {"type": "text", "text": " it is."}]}, {},
                 "Oslo it is.", (), [], id="parts"),
])
def test_every_form_of_citations_is_read(ask, serve, message, extra, said, cited, read):
    server = serve([{"message": {"role": "assistant", **message}, "extra": extra}])
    one = ask(server.url, model="m")
    assert (one["outcome"], one["text"], one["cited"], one["invalid_citations"]) == ("answered", said, cited, ())
    assert [(passage["number"], passage["gold"] is not None) for passage in one["evidence"]] == read
    assert server.requests[0][0] == {"model": "m", "messages": [{"role": "user", "content": QUESTION}]}


@pytest.mark.parametrize("cost", [0.25, {"total_cost": 0.25, "currency": "USD"}])
def test_the_price_that_a_service_says_is_the_price(ask, serve, cost):
    server = serve([{"text": "Oslo", "usage": {"prompt_tokens": 5, "completion_tokens": 2, "cost": cost}}])
    used = ask(server.url)["usage"]
    assert (used["prompt_tokens"], used["completion_tokens"], used["price"]) == (5, 2, 0.25)


@pytest.mark.parametrize(("line", "outcome", "said"), [
    ({"message": {"role": "assistant", "content": None, "refusal": "I cannot help with that."}}, "refused",
     "I cannot help with that."),
    ({"message": {"role": "assistant", "content": None}}, "error", "it returned no answer at $.answer"),
    ({"body": b'{"error": {"message": "no credit"}}'}, "error", "service: it failed: no credit"),
    ({"body": b'{"choices": [{"message": {"content": "Oslo", "annotations": [3, {"type": []}]}}], "ragbed": 3}'},
     "answered", "Oslo"),
    ({"status": 400, "error": {"message": "what is this?"}}, "error", "what is this?")])
def test_a_reply_without_an_answer_is_reported(ask, serve, line, outcome, said):
    one = ask(serve([line]).url)
    assert one["outcome"] == outcome
    assert said in (one["text"] or one["failure"]["message"])
