"""Trajectories as a run stores them, step by step."""
from stored import cell
from stored import result as stored_result

from ragbed.agents.database import text_hash
from ragbed.experiments.metrics import score_result
from ragbed.experiments.question import ANSWERS, Gold, Question
from ragbed.experiments.record import StoredPassage, StoredStep, Verdict
from ragbed.strategies import Failure, Usage

CELL = cell("retrieved", reasoning="agent", retriever="bm25")
TWO_HOPS = Question(id="q", text="?", answers=("x",), answerable=True, gold=(Gold("a"), Gold("b")))


def begins(*tools):
    return StoredStep(kind="decision", purpose="begins", text=f"tools: {', '.join(tools)}; 12 turns; delivery inline")


def turn(prompt, reply, purpose="agent"):
    return StoredStep(kind="generate", purpose=purpose, usage=Usage(prompt, reply, calls=1))


def search(query, *found):
    return StoredStep(kind="search", query=query, found=found)


def tool(name, *found, text="some text", failure=None, **arguments):
    return StoredStep(kind="tool", purpose=name, arguments=arguments, found=found, parts=(text_hash(text), *found),
                      failure=failure and Failure("tool", failure))


def stops(why="the reply calls no tool"):
    return StoredStep(kind="decision", purpose="stops", text=why)


def passage(number, *holds, level="span", aside=False):
    return StoredPassage(number=number, chunk=f"c{number}", document=f"d{number}", source=f"d{number}.txt", aside=aside,
                         format="plain", start=0, end=1, pages=None, text="t", gold=level if holds else None,
                         holds=holds)


def acted(*steps, evidence=(), cited=(), grade="Wrong", cell=CELL, question=TWO_HOPS, **changes):
    """A scored answer with these steps, whose usage is that of its model calls."""
    usage = sum((step.usage for step in steps), Usage())
    made = stored_result(cell.id, question.id, trace=steps, evidence=evidence, cited=cited, gold_total=2, usage=usage,
                         gold_in_view=True, verdict=Verdict(judge="j", grade=grade), **changes)
    return score_result(made, question, ANSWERS, "corrected", cell.rules, separators=True, searched=True)
