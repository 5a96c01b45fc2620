"""The report as a page of HTML: what it says, and that nothing in it can act."""
from __future__ import annotations

import base64
import gzip
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from bs4 import BeautifulSoup

from documents.types import digest
from experiments.question import Question
from experiments.record import Record, Result, StoredMessage, StoredPassage, StoredStep, Timing, Verdict
from experiments.report import ReportInput, write_report
from experiments.report.answers import linked
from experiments.report.store import TextStore
from experiments.report.text import bounded, pieces, visible
from strategies.types import Failure, Usage

HOSTILE = ('</script><script>alert(1)</script><img src=x onerror="alert(2)"></div></details></main><!-- '
           "<style>*{display:none}</style>\u202egpj.exe\u202c\x00\x1b[2J\ud800\u2028\U000e0041]]>{{ 7 * 7 }}")
TABLE = "<table><tr><th>Segment</th><th>2022</th></tr><tr><td>유럽</td><td>1,234</td></tr></table>"
NOTE = "answers by smollm2-135m, a 135M-parameter model: they show that the machine works"


class Run:
    """A run put together by hand."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}
        self.records: list[Record] = []
        self.questions: dict[str, Question] = {}

    def put(self, text: str) -> str:
        key = digest(text)
        self.texts[key] = text
        return key

    def passage(self, number: int, content: str, **fields: Any) -> StoredPassage:
        return StoredPassage(**{
            "number": number, "chunk": digest(content), "document": "d", "source": f"pages/{number}.html",
            "format": "plain", "start": 1200, "end": 1200 + len(content), "pages": (3, 4),
            "text": self.put(content), **fields})

    def record(self, cell: str, question: str, answer: str, evidence: tuple[StoredPassage, ...], **fields: Any) -> None:
        prompt = StoredMessage(role="user", parts=(self.put("The documents. " * 40), self.put(f"Ask {cell}.")))
        step = StoredStep(kind="generate", purpose="answer", messages=(prompt,), text=answer, finish_reason="stop",
                          usage=Usage(700, 12, 0, 1))
        search = StoredStep(kind="search", query=question, found=tuple(p.number for p in evidence))
        result = Result(**{
            "cell": cell, "question": question, "answerable": True, "outcome": "answered", "text": answer,
            "refused": False, "refused_as_published": False, "cited": (), "invalid_citations": (), "tagged": True,
            "notes": (), "evidence": evidence, "gold_total": 1, "gold_in_view": True,
            "verdict": Verdict(judge="lexical", grade="Wrong"), "scores": {"unified": 0.0, "em": None},
            "usage": Usage(700, 12, 0, 1), "trace": (search, step), **fields})
        timing = Timing(seconds=1.0, attempts=1, replayed=0, paid=0.0, finished="2026-11-20T00:00:00Z")
        self.records.append(Record(result=result, timing=timing))

    def write(self, folder: Path, cells: list[dict[str, Any]]) -> BeautifulSoup:
        summary = {"run": "runs/demo", "cells": cells, "notes": [NOTE]}
        path = folder / "report.html"
        write_report(ReportInput("demo", summary, self.questions, self.records, self.texts.__getitem__), path)
        return BeautifulSoup(path.read_bytes(), "html.parser")


def cell(name: str, low: float = 0.1, high: float = 0.5, **fields: Any) -> dict[str, Any]:
    mean = (low + high) / 2
    return {"id": name, "model": "smollm2-135m", "retrieval": "once", "retriever": "dense", "reasoning": name,
            "rules": "grounded", "condition": "given", "perturbation": None, "format": "html", "benchmark": "demo",
            "repeat": 0, "judge": "lexical", "scoring": "corrected", "n": 12, "outcomes": {"answered": 10, "error": 2},
            "metrics": {"unified": {"mean": mean, "low": low, "high": high, "n": 12}, "em": {"mean": None, "n": 0}},
            "usage": {"prompt_tokens": 12000, "completion_tokens": 600, "calls": 12, "price": None}, **fields}


@pytest.fixture
def run() -> Run:
    made = Run()
    made.questions = {"q1": Question("q1", "Where is the capital?", ("Paris",), answerable=True),
                      "q2": Question(HOSTILE, HOSTILE, (HOSTILE,), answerable=False)}
    gold, other = made.passage(1, TABLE, format="html", gold="chunk"), made.passage(2, "word " * 3000)
    made.record("direct", "q1", "Paris [1, 2] and [9].", (gold, other), cited=(1, 2), invalid_citations=(9,))
    made.record("draft", "q1", "", (gold,), outcome="error", failure=Failure("http_500", "it broke"), verdict=None)
    made.record("direct", "q2", HOSTILE, (made.passage(1, HOSTILE, source=HOSTILE, format="html"),))
    return made


@pytest.fixture
def page(run: Run, tmp_path: Path) -> BeautifulSoup:
    return run.write(tmp_path, [cell("direct"), cell("draft")])


def packed(page: BeautifulSoup) -> list[list[str]]:
    return [json.loads(gzip.decompress(base64.b64decode(block.string))) for block in page.select("script.texts")]


def test_hostile_text_makes_no_element_and_no_attribute(page: BeautifulSoup) -> None:
    assert not page.find_all(["img", "iframe", "object", "embed", "link", "base"])
    assert len(page.find_all("style")) == 1
    assert all(not name.startswith("on") and name != "style" for tag in page.find_all() for name in tag.attrs)
    assert {tag["href"][0] for tag in page.select("[href]")} == {"#"}
    assert "alert(1)" in page.select_one("#q2 .answer").text
    assert "{{ 7 * 7 }}" in page.select_one("#q2 .answer").text


def test_every_script_that_runs_is_named_by_its_hash_in_the_policy(page: BeautifulSoup) -> None:
    policy = page.select_one('meta[http-equiv="Content-Security-Policy"]')["content"]
    runnable = [tag for tag in page.find_all(["script", "style"]) if not tag.get("type")]
    assert [tag.name for tag in runnable] == ["style", "script"]
    for tag in runnable:
        assert base64.b64encode(hashlib.sha256(tag.string.encode()).digest()).decode() in policy
    assert "unsafe" not in policy
    assert policy.startswith("default-src 'none';")


def test_invisible_characters_are_written_out(page: BeautifulSoup) -> None:
    answer = page.select_one("#q2 .answer").text
    assert "⟨U+202E⟩gpj.exe⟨U+202C⟩⟨U+0000⟩⟨U+001B⟩[2J⟨U+D800⟩⟨U+2028⟩⟨U+E0041⟩" in answer
    assert visible("가나\tb\n\u200d") == "가나\tb\n\u200d"


def test_a_bounded_text_says_how_much_is_left_out() -> None:
    assert (bounded("x" * 10, 4).text, bounded("x" * 10, 4).left_out) == ("xxxx", 6)


def test_citations_link_to_the_passages_and_unshown_ones_are_marked(page: BeautifulSoup) -> None:
    answer = page.select_one("#q1-c1 .answer")
    assert answer.text == "Paris [1, 2] and [9]."
    assert [link["href"] for link in answer.select("a.cite")] == ["#q1-p1", "#q1-p2"]
    assert answer.select_one(".unshown").text == "9"
    assert all(page.select_one(link["href"]) for link in page.select("a[href]"))


def test_a_passage_shows_source_pages_offsets_gold_and_who_cited_it(page: BeautifulSoup) -> None:
    head = " ".join(page.select_one("#q1-p1 summary").text.split())
    assert head == (f"[1] pages/1.html html, pages 3 to 4, characters 1,200 to {1200 + len(TABLE):,} "
                    "gold by chunk cited by direct")
    assert "유럽" in page.select_one("#q1-p1 > .text").text
    assert "<td>" not in page.select_one("#q1-p1 > .text").text
    assert page.select_one("#q1-p1 details pre").text == TABLE


def test_a_long_passage_is_cut_with_a_note_and_whole_in_the_store(page: BeautifulSoup) -> None:
    rest = page.select_one("#q1-p2 .rest")
    assert rest.summary.text == "9,000 further characters: the whole passage"
    block, item = map(int, rest.pre["data-text"].split(":"))
    assert packed(page)[block][item] == "word " * 3000


def test_prompts_are_stored_once_and_shared_parts_are_folded(page: BeautifulSoup, run: Run) -> None:
    texts = [text for block in packed(page) for text in block]
    assert len(texts) == len(set(texts))
    assert "Ask draft." in texts
    part = page.select_one("#q1-c1 .trace .part")
    assert part.summary.text == "600 characters, shared with other prompts"
    assert "open" not in part.attrs
    assert part.pre["data-text"] == page.select_one("#q1-c2 .part pre")["data-text"]


def test_failures_and_missing_records_are_named(page: BeautifulSoup) -> None:
    assert page.select_one("#q1-c2 .failure").text == "Failure http_500: it broke"
    assert page.select_one("#q2-c2")["data-outcome"] == "missing"
    assert "no record" in page.select_one("#q2-c2").text


def test_the_summary_names_judge_interval_n_outcomes_and_notes(page: BeautifulSoup) -> None:
    row = page.select_one("table.cells tbody tr")
    assert page.select("table.cells thead th")[1].text == "unified (lexical)"
    assert " ".join(row.select_one('[data-label="unified (lexical)"]').text.split()) == "0.30 [0.10, 0.50] n 12"
    assert "answered 10 error 2" in " ".join(row.select_one(".outcomes").text.split())
    assert row.select_one('[data-label="em"]').text.split() == ["none", "n", "0"]
    assert NOTE in page.header.text


@pytest.mark.parametrize(("scoring", "words"), [
    ("corrected", "Every question counts, whatever its outcome."),
    ("as-published", "As published, an answer without text counts in no published metric.")])
def test_the_caption_says_what_counts(run: Run, tmp_path: Path, scoring: str, words: str) -> None:
    page = run.write(tmp_path, [cell("direct", scoring=scoring)])
    assert words in " ".join(page.select_one("table.cells caption").text.split())


def test_every_form_of_citation_is_linked_and_nothing_else() -> None:
    html = linked(bounded("a [ 1 ] b [1;2] c [1-2] d [3,] e [12345]", 100), {1: "p1", 2: "p2"})
    assert html.count('<a class="cite"') == 5
    assert html.endswith("d [3,] e [12345]")


def test_a_run_without_cells_or_questions_still_gives_a_page(tmp_path: Path) -> None:
    page = Run().write(tmp_path, [])
    assert "The run has no questions." in page.text
    assert page.select_one("#library") is None


def test_the_same_run_gives_the_same_bytes_and_leaves_no_other_file(run: Run, tmp_path: Path) -> None:
    first = run.write(tmp_path, [cell("direct")]).encode()
    assert run.write(tmp_path, [cell("direct")]).encode() == first
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]


def test_texts_beyond_the_budget_are_counted_as_omitted() -> None:
    store = TextStore({"a": "x" * 500_000, "b": "y" * 200_000, "c": "z"}.__getitem__, budget=1)
    assert (store.ref("a").left_out, store.ref("b").left_out) == (200_000, 0)
    assert (store.ref("c").block, store.ref("c").size, store.omitted) == (None, 1, 1)


def test_long_names_break_after_their_marks_and_lose_nothing() -> None:
    assert pieces("unified (http://127.0.0.1:80/v1#m_a)") == [
        "unified (http://", "127.", "0.", "0.", "1:", "80/", "v1#", "m_", "a)"]
    assert pieces("_a") == ["_", "a"]
