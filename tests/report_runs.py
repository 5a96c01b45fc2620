"""A run put together by hand, for the tests of the report, and its page taken apart again."""
import base64
import gzip
import json

from bs4 import BeautifulSoup

from ragbed.documents import digest
from ragbed.experiments import (
    Question,
    Record,
    ReportInput,
    Result,
    StoredMessage,
    StoredPassage,
    StoredStep,
    Timing,
    Verdict,
    write_report,
)
from ragbed.strategies import Failure, Usage

GRADE = {1.0: "Correct", 0.5: "Partially Correct", 0.0: "Wrong"}


class Run:
    """Texts, questions, records and cells; what the report is made of."""

    def __init__(self, *names):
        self.texts, self.records, self.questions = {}, [], {}
        self.causes = {name: {} for name in names}
        self.cells = [cell(name) for name in names]
        self.summary = {"run": "runs/shop", "columns": ["unified"], "notes": []}

    def ask(self, id, text="", *gold, answerable=True, **fields):
        self.questions[id] = Question(id, text or f"What is {id}?", gold, answerable=answerable, **fields)

    def put(self, text):
        key = digest(text.encode("utf-8", "replace").decode())
        self.texts[key] = text
        return key

    def passage(self, number, content, **fields):
        return StoredPassage(**{
            "number": number, "chunk": digest(repr(content)), "document": "d", "source": f"pages/{number}.html",
            "format": "plain", "start": 1200, "end": 1200 + len(content), "pages": (3, 4), "text": self.put(content),
            **fields})

    def prompt(self, *passages):
        shown = "".join(f"[{passage.number}]\n{self.texts[passage.text]}\n\n" for passage in passages)
        return f"Documents:\n\n{shown}"

    def answer(self, cell, question, text="", score=None, evidence=(), cause="", **fields):
        """A record; with a score it is graded."""
        asked = StoredMessage(role="user", parts=(self.put(self.prompt(*evidence)), self.put(f"Ask {cell}.")))
        search = StoredStep(kind="search", query=question, found=tuple(passage.number for passage in evidence))
        step = StoredStep(kind="generate", purpose="answer", messages=(asked,), text=text, finish_reason="stop",
                          usage=Usage(700, 12, 0, 1))
        outcome = fields.pop("outcome", "answered")
        failure = Failure("http_500", "it broke") if outcome == "error" else None
        judged = score is not None and outcome == "answered"
        result = Result(**{
            "cell": cell, "question": question, "answerable": True, "outcome": outcome, "text": text,
            "refused": outcome == "refused", "refused_as_published": False, "cited": (), "invalid_citations": (),
            "tagged": True, "notes": (), "evidence": tuple(evidence), "gold_total": 1, "gold_in_view": True,
            "verdict": Verdict(judge="lexical", grade=GRADE[score]) if judged else None,
            "scores": {"unified": score, "em": None}, "usage": Usage(700, 12, 0, 1), "trace": (search, step),
            "failure": failure, **fields})
        timing = Timing(seconds=1.0, attempts=1, replayed=0, paid=0.0, finished="2026-11-20T00:00:00Z")
        self.records.append(Record(result=result, timing=timing))
        if cause:
            self.causes[cell][question] = cause

    def view(self, name="shop"):
        summary = {**self.summary, "cells": self.cells}
        return ReportInput(name, summary, self.questions, self.records, self.texts.__getitem__, ("unified",),
                           lambda results: self.causes)

    def write(self, folder, name="shop", **options):
        path = folder / "report.html"
        write_report(self.view(name), path, **options)
        return path


def cell(name, **fields):
    return {"id": name, "model": "smollm2-135m", "retrieval": "once", "retriever": "dense", "reasoning": name,
            "rules": "grounded", "condition": "provided", "perturbation": None, "format": "html", "benchmark": "shop",
            "repeat": 0, "judge": "lexical", "scoring": "corrected", "n": 12, "outcomes": {"answered": 10, "error": 2},
            "metrics": {"unified": {"mean": 0.3, "low": 0.1, "high": 0.5, "n": 12}},
            "usage": {"prompt_tokens": 12000, "completion_tokens": 600, "calls": 12, "price": None}, **fields}


def shop():
    """Three cells over six questions, whose filters can be counted by hand.

                    1 direct       2 draft        3 plan
        capital     right          wrong          right
        author      wrong          right          (no record)
        year        refused        error          wrong
        moon        right refusal  wrong          right refusal     unanswerable
        river       right          right          right
        peak        partly         malformed      wrong
    """
    run = Run("direct", "draft", "plan")
    place, person = {"type": ("place",)}, {"type": ("person",)}
    run.ask("capital", "Where is the capital?", "Paris", tags=place)
    run.ask("author", "Who wrote it?", "Ann Lee", tags=person)
    run.ask("year", "When was it?", "1066")
    run.ask("moon", "Which moon is blue?", answerable=False, tags=place)
    run.ask("river", "Which river is longest?", "Nile", tags=place)
    run.ask("peak", "Which peak is highest?", "Everest", tags=place)
    gold = run.passage(1, "Paris has been the capital since it was moved from Zanzibar, as all the records say. " * 2,
                       gold="chunk", source="gold.html")
    other = run.passage(2, "Lyon is a city on two rivers, of which the larger one is the Rhône, as everyone knows.")
    run.answer("direct", "capital", "Paris [1]", 1.0, (gold, other), "right", cited=(1,))
    run.answer("draft", "capital", "Lyon [2] [7]", 0.0, (gold, other), "reasoning_error", cited=(2,),
               invalid_citations=(7,))
    run.answer("plan", "capital", "Paris", 1.0, (), "parametric")
    run.answer("direct", "author", "Bob", 0.0, cause="retrieval_miss")
    run.answer("draft", "author", "Ann Lee", 1.0, cause="right")
    run.answer("direct", "year", "I cannot answer", 0.0, outcome="refused", refused=True, cause="wrong_refusal")
    run.answer("draft", "year", "", 0.0, outcome="error", cause="failed")
    run.answer("plan", "year", "1067", 0.0, cause="reasoning_error")
    run.answer("direct", "moon", "I cannot answer", 1.0, outcome="refused", refused=True, cause="right")
    run.answer("draft", "moon", "Luna", 0.0, cause="missing_refusal")
    run.answer("plan", "moon", "I cannot answer", 1.0, outcome="refused", refused=True, cause="right")
    for name in ("direct", "draft", "plan"):
        run.answer(name, "river", "The Nile", 1.0, cause="right")
    run.answer("direct", "peak", "Mount Everett", 0.5, cause="undetermined")
    run.answer("draft", "peak", "?", 0.0, outcome="malformed", cause="format")
    run.answer("plan", "peak", "K2", 0.0, cause="undetermined")
    return run


class Page:
    """A written report as a parser sees it, and what its script would unpack."""

    def __init__(self, path):
        self.soup = BeautifulSoup(path.read_bytes(), "html.parser")
        self.index = self.unpacked("index")

    def unpacked(self, id):
        return json.loads(gzip.decompress(base64.b64decode(self.soup.find(id=id).string)))

    def items(self, kind):
        blocks = len(self.index["kinds"][kind]["firsts"])
        return [item for block in range(blocks) for item in self.unpacked(f"{kind}-{block}")]

    def question(self, id):
        return self.items("questions")[self.index["items"][self.index["ids"].index(id)]]
