"""Cells and results as a run stores them, for tests that look at results without a run."""
from ragbed.experiments import Cell, Result
from ragbed.strategies import Usage


def cell(condition="provided", **changes):
    return Cell(**{"model": "m", "retrieval": None, "retriever": None, "reasoning": "direct", "rules": "grounded",
                   "condition": condition, "perturbation": None, "show": "question", "format": None, "benchmark": "b",
                   "repeat": 0, "seed": None, **changes})


def result(cell, question="q", scores=None, **changes):
    """The answer of a cell of that id to a question of that id, without evidence and without a verdict."""
    return Result(**{"cell": cell, "question": question, "answerable": True, "outcome": "answered", "text": "x",
                     "refused": False, "refused_as_published": False, "cited": (), "invalid_citations": (),
                     "tagged": True, "notes": (), "evidence": (), "gold_total": 0, "gold_in_view": None,
                     "verdict": None, "scores": scores or {}, "usage": Usage(), "trace": (), **changes})
