"""A summary put together by hand, for the tests of what the report makes of summaries, and its page."""
from bs4 import BeautifulSoup

from ragbed.experiments import ReportInput, write_report
from ragbed.experiments.analysis.analyses import make_views
from ragbed.experiments.analysis.inputs import AnalysisInput
from ragbed.experiments.metrics import estimate_share as share

HOSTILE = '<img src=x onerror="alert(1)">'
CONDITIONS = ("retrieved", "gold", "closed-book")


def cell(reasoning, condition="retrieved", mean=0.5, tokens=1000, **fields):
    searched = condition == "retrieved"
    figure = {"mean": mean, "low": max(mean - 0.1, 0.0), "high": min(mean + 0.1, 1.0), "n": 50}
    return {"id": f"{reasoning}/{condition}", "model": "m", "reasoning": reasoning, "condition": condition,
            "rules": "closed-book" if condition == "closed-book" else "grounded", "perturbation": None,
            "retrieval": "once" if searched else None, "retriever": "dense" if searched else None, "repeat": 0,
            "judge": None, "scoring": "corrected", "n": 50, "outcomes": {"answered": 45, "refused": 5},
            "metrics": {"em": figure}, "usage": {"prompt_tokens": 50 * tokens, "completion_tokens": 0, "calls": 50,
                                                 "price": None}, **fields}


def pair(first, second, difference=-0.1, p=0.2, **fields):
    return {"factor": "reasoning", "first": first, "second": second, "n": 50, "clusters": 50, "unpaired": 0,
            "before": 0.5, "before_low": 0.4, "before_high": 0.6, "after": 0.5 + difference,
            "after_low": 0.35 + difference, "after_high": 0.6 + difference, "difference": difference,
            "low": difference - 0.1, "high": difference + 0.1, "gained": 9, "lost": 4, "test": "McNemar", "p": p,
            "p_holm": p, "odds": 2.25, "dz": None, "smallest": 0.2, **fields}


def level(name, mean, effect, **fields):
    return {"level": name, "mean": mean, "low": mean - 0.1, "high": mean + 0.1, "effect": effect,
            "effect_low": effect - 0.05, "effect_high": effect + 0.05, "n": 100, **fields}


CELLS = [cell(reasoning, condition, 0.2 * at + 0.1 * step, 100 * (at + 1) * (step + 1))
         for at, condition in enumerate(CONDITIONS) for step, reasoning in enumerate(("direct", HOSTILE))]
CAUSES = [{"name": "right", "title": "right", "definition": "It is right."},
          {"name": "retrieval_miss", "title": "retrieval miss", "definition": "Not in view."},
          {"name": "format", "title": "format", "definition": HOSTILE}]
SUMMARY = {
    "columns": ["em"], "cells": CELLS, "notes": [], "views": [], "published": [],
    "comparisons": {"metric": "em", "notes": ["p (Holm) is corrected for 2 comparisons."], "pairs": [
        pair("direct/retrieved", f"{HOSTILE}/retrieved"),
        pair("direct/gold", f"{HOSTILE}/gold", 0.3, p=0.001, unpaired=2)]},
    "effects": {"metric": "em", "notes": ["A note."], "factors": [
        {"factor": "reasoning", "p": 0.2, "p_holm": 0.2,
         "levels": [level("direct", 0.4, -0.02), level(HOSTILE, 0.45, 0.02)]},
        {"factor": "condition", "p": 1e-6, "p_holm": 3e-6, "levels": [level("gold", 0.7, 0.3)]}],
        "interactions": [{"factors": ["reasoning", "condition"], "p": 0.3, "p_holm": 0.3,
                          "cells": [level("", 0.5, 0.0, levels=["direct", "gold"])]}]},
    "error_analysis": {"metric": "em", "causes": CAUSES, "notes": ["See `ragbed diagnose`."], "joint": [
        {"cell": "direct/retrieved", "gold": "direct/gold", "n": 50, "both": 20, "lost": 12, "gained": 8,
         "neither": 10, "kept": share(20, 32), "mended": share(0, 0), "p": 0.5, "p_holm": 0.5}], "cells": [
        {"cell": one["id"], "n": 50, "causes": {"right": share(20, 50), "retrieval_miss": share(30, 50),
                                                 "format": share(0, 50)}} for one in CELLS]},
    "tradeoff": [{"cell": one["id"], "answered": share(40, 50), "risk": share(10, 40)} for one in CELLS]}


def page(folder, summary, correctness_metrics=()):
    """The page of a summary, with the views of what it holds."""
    path = folder / "report.html"
    results = {one["id"]: [] for one in summary.get("cells", [])}
    run = AnalysisInput(summary.get("cells", []), results, {}, tuple(summary.get("columns", ())), found=summary,
                        correctness_metrics=correctness_metrics)
    views = [view.as_json() for view in make_views((), run)]
    write_report(ReportInput("r", {**summary, "views": [*views, *summary.get("views", ())]}, {}, [], {}.__getitem__,
                             correctness_metrics), path)
    return BeautifulSoup(path.read_bytes(), "html.parser")


def words(tag):
    return " ".join(tag.get_text(" ").split())
