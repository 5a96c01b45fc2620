"""The bundled demo set: small, attributed, a third unanswerable, and cut as its script says."""
from pathlib import Path

from ragbed.experiments.benchmarks import load_demo
from ragbed.experiments.benchmarks.jsonl import FOLDER
from ragbed.strategies.normalizing import normalize_answer

PAGES = {path.name: path.read_text(encoding="utf-8") for path in (FOLDER / "pages").iterdir()}


def test_96_questions_a_third_of_them_unanswerable():
    benchmark = load_demo()
    assert len(benchmark.questions) == 96
    assert sum(not question.answerable for question in benchmark.questions) == 32
    assert Path(benchmark.corpus) == FOLDER / "pages"


def test_gold_pages_are_there_and_the_answer_stands_in_one_of_them():
    for question in load_demo().questions:
        texts = [normalize_answer(PAGES[gold.document]) for gold in question.gold]
        assert bool(texts) == question.answerable
        if question.answerable:
            assert any(normalize_answer(question.answers[0]) in text for text in texts), question.id


def test_no_page_answers_an_unanswerable_question():
    for question in load_demo().questions:
        if not question.answerable:
            assert not any(normalize_answer(question.answers[0]) in normalize_answer(text) for text in PAGES.values())


def test_every_page_and_question_is_attributed():
    credits = (FOLDER / "ATTRIBUTION.md").read_text(encoding="utf-8")
    assert all(f"`pages/{name}`" in credits for name in PAGES)
    assert all(f"question `{question.id}`" in credits for question in load_demo().questions)
