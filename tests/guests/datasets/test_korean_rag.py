"""Korean RAG: pages with their numbers, questions with their page, and what is refused."""
import json
import shutil
from pathlib import Path

import pytest

from ragbed.documents import BenchmarkError
from ragbed.experiments import Gold
from ragbed.experiments.guests.datasets.korean_rag import KoreanRag

DATA = Path(__file__).parents[2] / "data" / "korean_rag"


def test_a_passage_is_a_page_of_its_pdf_and_the_gold_of_its_question():
    benchmark = KoreanRag(path=str(DATA)).load()
    page = benchmark.documents["finance - 에스크 은행 보고서.pdf - 4"]
    assert (page.source, page.title) == ("finance - 에스크 은행 보고서.pdf", "finance - 에스크 은행 보고서")
    assert [chunk.pages for chunk in benchmark.shared] == [(4, 4), (5, 5), (1, 1)]
    question = benchmark.questions[0]
    assert question.gold == (Gold(page.id),)
    assert question.answers == ("250억원입니다.",)
    assert question.tags == {"language": ("ko",), "domain": ("finance",)}
    assert not question.provided


@pytest.fixture
def broken(tmp_path):
    shutil.copytree(DATA, tmp_path / "set")

    def write(file, **changes):
        path = tmp_path / "set" / file
        first, *rest = path.read_text(encoding="utf-8").splitlines()
        path.write_text("\n".join([json.dumps({**json.loads(first), **changes}), *rest]), encoding="utf-8")
        return KoreanRag(path=str(tmp_path / "set"))

    return write


@pytest.mark.parametrize(("file", "changes", "said"), [
    ("qa.jsonl", {"retrieval_gt": [["nowhere"]]}, "retrieval_gt: expected the id of a passage, found 'nowhere'"),
    ("qa.jsonl", {"retrieval_gt": [[]]}, "retrieval_gt: expected lists of passages' ids"),
    ("qa.jsonl", {"generation_gt": []}, "generation_gt: expected at least one answer"),
    ("corpus.jsonl", {"contents": None}, "contents: expected text"),
    ("corpus.jsonl", {"doc_id": "law - 룬드 항만 판결.pdf - 1"}, "doc_id: expected an id that no other passage has")])
def test_what_does_not_fit_is_said(broken, file, changes, said):
    with pytest.raises(BenchmarkError, match=f"{file}, line [13], field {said}"):
        broken(file, **changes).load()


def test_passages_alone_are_no_benchmark(tmp_path):
    shutil.copy(DATA / "corpus.jsonl", tmp_path)
    with pytest.raises(BenchmarkError, match="the questions in another"):
        KoreanRag(path=str(tmp_path)).load()
