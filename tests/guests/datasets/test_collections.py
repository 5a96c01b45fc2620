"""MultiHop-RAG, BEIR folders and TREC test collections: questions over a corpus that all share."""
import json
from pathlib import Path

import pytest

from ragbed.documents import BenchmarkError
from ragbed.experiments import Gold
from ragbed.experiments.guests.datasets.beir import Beir
from ragbed.experiments.guests.datasets.multihop_rag import MultiHopRag
from ragbed.experiments.guests.datasets.qrels import read_qrels
from ragbed.experiments.guests.datasets.trec import Trec
from ragbed.experiments.running.gold import match
from ragbed.strategies import Passage

DATA = Path(__file__).parents[2] / "data"


@pytest.fixture
def collection(tmp_path):
    """A copy of a fixture's folder, with files replaced."""
    def copy(name, **files):
        for file in (DATA / name).rglob("*"):
            place = tmp_path / file.relative_to(DATA / name)
            if file.is_file():
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_bytes(file.read_bytes())
        for place, text in files.items():
            (tmp_path / place.replace("__", "/").replace("_dot_", ".")).write_text(text)
        return tmp_path
    return copy


def held(benchmark, question):
    """The texts of the shared chunks that hold gold, and whether all of the gold is held."""
    view = match(question.gold, [Passage(number, chunk) for number, chunk in enumerate(benchmark.shared)],
                 lambda id: benchmark.documents[id].source)
    texts = [chunk.content for number, chunk in enumerate(benchmark.shared) if view.levels[number] is not None]
    return texts, len(view.in_view) == view.total


def test_facts_are_found_in_the_chunks_of_the_articles_bodies():
    benchmark = MultiHopRag(path=str(DATA / "multihop_rag"), size=40).load()
    both, _, none = benchmark.questions
    texts, all_held = held(benchmark, both)
    assert all_held
    assert all(text.startswith(("Harbour shut (Esk News, 2023-05-04)\n", "Ships turned away (Lund Post, 2023-05-05)\n"))
               for text in texts)
    assert len(texts) < len([chunk for chunk in benchmark.shared if chunk.document != "https://isle.example/harbour"])
    assert (none.answerable, none.answers, none.gold) == (False, (), ())
    assert [question.tags["question_type"] for question in benchmark.questions] == [
        ("comparison_query",), ("inference_query",), ("null_query",)]


def test_a_fact_that_is_not_in_its_article_makes_the_article_gold():
    question = MultiHopRag(path=str(DATA / "multihop_rag")).load().questions[1]
    assert question.gold[1] == Gold("https://lund.example/harbour")


def test_a_collection_of_facts_has_a_chunk_for_each(collection):
    facts = [{"_id": f"https://{name}.example/harbour", "title": name, "source": name, "published_at": "2023-05-04",
              "facts": texts} for name, texts in (
        ("esk", ["Ships wait.", "The harbour of Esk was closed on 3 May."]),
        ("lund", ["Port officials said that Esk had closed its harbour."]))]
    folder = collection("multihop_rag", corpus_dot_json=json.dumps(facts))
    benchmark = MultiHopRag(path=str(folder)).load()
    assert len(benchmark.shared) == 3
    assert held(benchmark, benchmark.questions[0]) == ([
        "esk (esk, 2023-05-04)\nThe harbour of Esk was closed on 3 May.",
        "lund (lund, 2023-05-04)\nPort officials said that Esk had closed its harbour."], True)


def test_queries_without_articles_are_refused():
    with pytest.raises(BenchmarkError, match="expected a folder with the queries in one file and the articles in"):
        MultiHopRag(path=str(DATA / "multihop_rag" / "MultiHopRAG.json")).load()


def test_a_beir_folder_is_judged_queries_over_a_shared_corpus():
    benchmark = Beir(path=str(DATA / "beir")).load()
    assert [(question.id, question.gold) for question in benchmark.questions] == [
        ("1", (Gold("4983"), Gold("33370"))), ("2", (Gold("7912"),))]
    assert [chunk.document for chunk in benchmark.shared] == ["4983", "5836", "7912", "18670", "33370"]
    assert benchmark.shared[0].content.startswith("Reefs of Esk\nThe northern reef")
    assert benchmark.shared[2].content == "Bells that are cast in winter ring lower."
    assert {document.source for document in benchmark.documents.values()} == set(benchmark.documents)
    assert held(benchmark, benchmark.questions[1]) == (["Bells that are cast in winter ring lower."], True)
    assert [question.id for question in Beir(path=str(DATA / "beir"), split="train").load().questions] == ["9"]


def test_a_limit_leaves_the_corpus_whole():
    benchmark = Beir(path=str(DATA / "beir"), limit=1).load()
    assert (len(benchmark.questions), len(benchmark.shared), len(benchmark.documents)) == (1, 5, 5)


def test_qrels_may_be_records_or_have_no_header(collection):
    records = collection("beir", qrels__dev_dot_jsonl='{"query-id": "2", "corpus-id": 7912, "score": 1}\n',
                         qrels__bare_dot_tsv="2\t7912\t1\n")
    for split in ("dev", "bare"):
        question, = Beir(path=str(records), split=split).load().questions
        assert (question.id, question.gold) == ("2", (Gold("7912"),))


def test_a_trec_collection_keeps_a_judged_document_that_the_corpus_lacks():
    benchmark = Trec(path=str(DATA / "trec")).load()
    assert [(question.id, question.text, [gold.document for gold in question.gold]) for question in benchmark.questions
            ] == [("301", "How fast do reefs grow?", ["4983", "33370"]),
                  ("302", "Which bells ring lower?", ["7912", "MISSING-1"])]
    assert len(benchmark.shared) == 5


def test_a_trec_collection_may_stand_in_several_places(collection):
    folder = collection("trec")
    pages = folder / "pages"
    pages.mkdir()
    (pages / "4983").with_suffix(".txt").write_text("Reefs grow.")
    (folder / "mine.qrels").write_text("1 Q0 4983.txt 1\n")
    (folder / "asked.jsonl").write_text('{"_id": "1", "text": "Do reefs grow?"}\n')
    benchmark = Trec(path=str(folder / "mine.qrels"), topics=str(folder / "asked.jsonl"), corpus=str(pages)).load()
    assert (benchmark.corpus, benchmark.shared) == (str(pages), ())
    assert benchmark.questions[0].gold == (Gold("4983.txt"),)


@pytest.mark.parametrize(("files", "complaint"), [
    ({"qrels__test_dot_tsv": "query-id\tcorpus-id\tscore\n1\t4983\n"}, "test.tsv, line 2: expected query, document"),
    ({"qrels__test_dot_tsv": "1\t4983\t1\n2\t7912\tyes\n"}, "test.tsv, line 2: expected query, document and relevance"),
    ({"qrels__test_dot_tsv": "1\t4983\t1\n2\t7912\t" + "9" * 5000}, "test.tsv, line 2: expected query, document and"),
    ({"qrels__test_dot_tsv": "2\t7912\t" + "9" * 5000}, "test.tsv, line 1: expected query, document and relevance"),
    ({"qrels__test_dot_tsv": "77\t4983\t1\n"}, "the query 77 is judged, but no topic or query has that id"),
    ({"qrels__test_dot_tsv": "query-id\tcorpus-id\tscore\n"}, "test.tsv: has no judgements"),
    ({"corpus_dot_jsonl": '{"_id": "a", "text": "x"}\n{"_id": "a", "text": "y"}\n'},
     "line 2, field _id: expected an id that no other document has, found 'a'"),
])
def test_a_line_that_does_not_fit_says_where(collection, files, complaint):
    with pytest.raises(BenchmarkError, match=complaint):
        Beir(path=str(collection("beir", **files))).load()


def test_lines_that_do_not_fit_are_left_out_and_named_where_that_is_asked_for(collection):
    files = {"topics_dot_tsv": "301\tHow fast do reefs grow?\n302\n",
             "qrels_dot_txt": "301 0 4983 1\n301 33370\n301 0 7912 yes\n302 0 7912 1\n301 0 4983 0\n"}
    folder = collection("trec", **files)
    benchmark = Trec(path=str(folder), skip_bad=True).load()
    assert [(question.id, question.gold) for question in benchmark.questions] == [("301", (Gold("4983"),))]
    columns = "expected query, document and relevance in three columns, or in TREC's four, found"
    assert [said.replace(f"{folder}/", "") for said in benchmark.skipped] == [
        f"qrels.txt, line 2: {columns} '301 33370'", f"qrels.txt, line 3: {columns} '301 0 7912 yes'",
        "qrels.txt: for the query 301 the document 4983 appears twice, as '1' and as '0'; keep one",
        "topics.tsv, line 2: expected an id, a tab and the query, found '302'",
        "qrels.txt: the query 302 is judged, but no topic or query has that id"]
    with pytest.raises(BenchmarkError, match="'301 33370'; set skip_bad to skip invalid records"):
        Trec(path=str(folder)).load()
    with pytest.raises(BenchmarkError, match=r"found '301 33370'$"):  # where nobody can ask for it
        read_qrels(folder / "qrels.txt")


def test_a_folder_that_lacks_a_part_says_which(tmp_path):
    with pytest.raises(BenchmarkError, match=r"no corpus\.jsonl or corpus\.json or corpus\.parquet in it"):
        Beir(path=str(tmp_path)).load()


def test_a_topic_without_a_tab_says_where(collection):
    with pytest.raises(BenchmarkError, match=r"topics\.tsv, line 1: expected an id, a tab and the query, found '301'"):
        Trec(path=str(collection("trec", topics_dot_tsv="301\n"))).load()


@pytest.mark.parametrize(("path", "split", "tables"), [
    ("data/SciFact/", "test", ("beir_scifact",)), ("hub:mteb/scifact", "test", ("beir_scifact",)),
    ("scifact", "train", ()), ("data/nfcorpus", "test", ())])
def test_published_figures_stand_beside_the_split_that_they_are_of(path, split, tables):
    assert Beir(path=path, split=split).scheme_of(()).published == tables
