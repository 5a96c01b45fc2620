"""BrowseComp-Plus: its decrypted file, corpus and judgements, and the figures and files of its leaderboard."""
import json

import pytest
from loaded import loaded

from ragbed.documents import BenchmarkError
from ragbed.experiments.guests.datasets.browsecomp_plus import RUN_FILES, BrowseCompPlus


def page(id, text="A page."):
    return {"docid": id, "text": text, "url": f"https://x/{id}"}


SOLD = page("1", "---\ntitle: Aster Point\n---\nIt was sold.")
ROW = {"query_id": 769, "query": "Which light did the keeper sell?", "answer": "Aster Point", "gold_docs": [SOLD],
       "evidence_docs": [SOLD, page("2")], "negative_docs": [page(3)]}


@pytest.fixture
def load(tmp_path):
    return lambda *rows, **settings: loaded(BrowseCompPlus, tmp_path / "decrypted.jsonl", *rows, **settings)


def test_the_documents_of_all_questions_are_the_corpus(load):
    found = load(ROW, {**ROW, "query_id": "8", "evidence_docs": [page("4")], "gold_docs": []})
    assert [(chunk.document, found.documents[chunk.document].title) for chunk in found.shared] == [
        ("1", "Aster Point"), ("2", "https://x/2"), ("3", "https://x/3"), ("4", "https://x/4")]
    first, second = found.questions
    assert (first.id, first.answers, [gold.document for gold in first.gold]) == ("769", ("Aster Point",), ["1", "2"])
    assert [chunk.document for chunk in first.negatives] == ["3"]
    assert [gold.document for gold in second.gold] == ["4"]


def test_gold_documents_or_judgements_can_be_the_gold(load, tmp_path):
    question, = load(ROW, labels="gold").questions
    assert [gold.document for gold in question.gold] == ["1"]
    (tmp_path / "qrels.txt").write_text("769 Q0 3 1\n769 Q0 2 0\n", encoding="utf-8")
    question, = load(ROW, qrels=str(tmp_path / "qrels.txt")).questions
    assert [gold.document for gold in question.gold] == ["3"]


def test_a_corpus_replaces_the_documents_of_the_questions(load, tmp_path):
    (tmp_path / "corpus").mkdir()
    (tmp_path / "corpus" / "part.jsonl").write_text("".join(json.dumps(page(id)) + "\n" for id in ("2", "9")))
    found = load({**ROW, "gold_docs": ["1"], "negative_docs": None}, corpus=str(tmp_path / "corpus"))
    assert [chunk.document for chunk in found.shared] == ["2", "9"]
    assert [gold.document for gold in found.questions[0].gold] == ["1", "2"]


@pytest.mark.parametrize(("changes", "complaint"), [
    ({"query": "Q2FuYXJ5IGNhbmFyeSBjYW5hcnk="}, "field query: expected a decrypted question; decrypt the file with"),
    ({"answer": ""}, "field answer: expected text that is not blank"),
    ({"evidence_docs": {}}, "field evidence_docs: expected a list of documents, found {}"),
    ({"evidence_docs": [{"url": "x"}]}, r"field evidence_docs\[0\].docid: expected text or a whole number"),
])
def test_a_record_that_does_not_fit_says_where(load, changes, complaint):
    with pytest.raises(BenchmarkError, match=complaint):
        load({**ROW, **changes})


@pytest.fixture
def played(ragbed, serve, tmp_path):
    """A run over 120 questions. Each has two evidence documents, and the one search of each finds one of them. Every
    second answer is right, and one call fails."""
    rows = [{"query_id": str(one), "query": f"Which harbour has the number x{one}x?", "answer": f"Harbour {one}",
             "gold_docs": [], "evidence_docs": [page(f"{one}a", f"Harbour number x{one}x."), page(f"{one}b", "Mole.")],
             "negative_docs": []} for one in range(120)]
    data = tmp_path / "decrypted.jsonl"
    data.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")

    def reply(body):
        number = int(str(body["messages"][-1]["content"]).rpartition("number x")[2].partition("x?")[0])
        if number == 7:
            return {"status": 400, "error": {"message": "no"}}
        return f"<Answer>Harbour {number if number % 2 else -1} [1]. Confidence: 80%</Answer>"

    settings = {"benchmark": {"kind": "browsecomp_plus", "path": str(data)}, "models": f"{serve(reply).url}#m",
                "reasoning": "direct", "retriever": {"kind": "bm25", "k": 1}, "name": "made",
                "out": str(tmp_path / "runs"), "calls": {"calls": {"attempts": 1}}}
    (tmp_path / "made.yaml").write_text(json.dumps(settings), encoding="utf-8")
    ragbed("run", tmp_path / "made.yaml")
    return data, tmp_path / "runs" / "made"


def figures(ragbed, run):
    view = next(one for one in json.loads((run / "summary.json").read_text())["views"] if one["name"] == "browsing")
    return dict(zip(view["header"], view["rows"][0], strict=True))


def test_the_figures_are_those_of_the_leaderboard(ragbed, played):
    """60 odd numbers less the failed call are right: 59 of 120. Of 119 judged answers, 59 are right at 80 %."""
    assert figures(ragbed, played[1]) == {
        "cell": "direct", "n": 120, "accuracy": 49.17, "recall": 50.0, "calibration error": 0.0, "all bins": 30.42}


def test_a_run_is_written_as_the_leaderboards_files_and_read_again(ragbed, played, tmp_path):
    data, run = played
    status, out, err = ragbed("export", run, tmp_path / "submitted", "--as", "browsecomp_plus")
    assert (status, err) == (0, "")
    assert out == f"{tmp_path / 'submitted'}: 120 answers\n"
    files = sorted((tmp_path / "submitted").iterdir())
    assert [file.name for file in files[:2]] == ["run_0001_0.json", "run_0002_1.json"]
    assert json.loads(files[1].read_text()) == {
        "metadata": {"model": "made"}, "query_id": "1", "tool_call_counts": {"search": 1}, "status": "completed",
        "retrieved_docids": ["1a"], "result": [
            {"type": "output_text", "output": "Harbour 1 [1a]. Confidence: 80%"}]}
    failed = json.loads(files[7].read_text())
    assert (failed["status"], failed["result"]) == ("error", [])
    ragbed.refuses("export", run, tmp_path / "submitted", "--as", "browsecomp_plus", says=["name another folder"])
    ragbed("import", "browsecomp_plus", tmp_path / "submitted", "--benchmark", "browsecomp_plus", data, "--out",
           tmp_path / "runs", "--name", "again")
    without_the_failed = round(100 * 119 * 0.5 / 120, 2)
    assert figures(ragbed, tmp_path / "runs" / "again") == figures(ragbed, run) | {
        "cell": "submitted", "recall": without_the_failed}


def test_run_files_of_other_agents_cite_documents_by_id(tmp_path):
    run = {"query_id": "769", "tool_call_counts": {"search": 2}, "status": "completed", "retrieved_docids": ["5", "9"],
           "result": [{"type": "tool_call", "tool_name": "search", "output": "[]"}, {
               "type": "output_text", "output": "It was sold [9, 5]. Exact Answer: Aster [2024] Confidence: 30%"}]}
    (tmp_path / "a.json").write_text(json.dumps(run))
    (tmp_path / "b.json").write_text(json.dumps({**run, "query_id": "8", "status": "incomplete"}))
    first, second = RUN_FILES.read(tmp_path)
    assert (first.id, first.content, first.failure) == ("769", {
        "answer": "It was sold [2, 1]. Exact Answer: Aster [2024] Confidence: 30%",
        "contexts": [{"document": "5"}, {"document": "9"}]}, "")
    assert second.failure == "the run file has no final answer; its status is incomplete"


def test_an_agents_calls_and_confidence_are_in_the_figures_and_in_its_files(ragbed, serve, load, tmp_path):
    """Each question makes one search and two greps, and answers with a confidence of 85 %."""
    load(ROW, {**ROW, "query_id": "8"})
    lines = ["Thought: look.\nsearch: light", 'Thought: look.\ngrep: {"pattern": "sold"}',
             'Thought: again.\ngrep: {"pattern": "reef"}', "Thought: seen.\nfinish",
             "<Answer>Aster Point [1]</Answer>\nConfidence: 85"]
    server = serve(lambda body: lines[sum(message["role"] == "assistant" for message in body["messages"])])
    agent = {"kind": "agent", "tools": ["search", "grep"], "protocol": "text", "confidence": True}
    (tmp_path / "run.yaml").write_text(json.dumps({
        "benchmark": {"kind": "browsecomp_plus", "path": str(tmp_path / "decrypted.jsonl")}, "retriever": "bm25",
        "models": f"{server.url}#m", "reasoning": agent, "name": "made", "out": str(tmp_path / "runs")}))
    ragbed.json("run", tmp_path / "run.yaml")
    found = figures(ragbed, tmp_path / "runs" / "made")
    assert (found["accuracy"], found["recall"], found["calls: search"], found["calls: grep"]) == (100.0, 50.0, 1.0, 2.0)
    assert found["calibration error"] is found["all bins"] is None
    ragbed("export", tmp_path / "runs" / "made", tmp_path / "submitted", "--as", "browsecomp_plus")
    run = json.loads((tmp_path / "submitted" / "run_0001_769.json").read_text())
    assert run["tool_call_counts"] == {"search": 1, "grep": 2}
    assert run["result"] == [{"type": "output_text", "output": "Aster Point [1]\nConfidence: 85%"}]
