"""Cells and pairs as a summary has them, and the sentences that the report makes of them."""
from experiments.report.cells import table
from experiments.report.entrants import entrants
from experiments.report.page import verdicts


def cell(reasoning, mean=0.5, condition="given", tokens=1000, **fields):
    figure = {"mean": mean, "low": None if mean is None else mean - 0.1, "high": None if mean is None else mean + 0.1,
              "n": 100}
    return {"id": f"{reasoning}/{condition}", "model": "m", "reasoning": reasoning, "rules": "grounded",
            "condition": condition, "repeat": 0, "seed": None, "judge": "http://host/v1#gpt-4o", "scoring": "corrected",
            "n": 100, "outcomes": {"answered": 100}, "metrics": {"unified": figure},
            "usage": {"prompt_tokens": 100 * tokens, "completion_tokens": 0, "calls": 100, "price": None}, **fields}


def pair(first, second, difference, p=0.5, factor="reasoning", **fields):
    """Of the second cell against the first."""
    return {"factor": factor, "first": first, "second": second, "n": 100, "clusters": 100, "unpaired": 0, "before": 0.5,
            "after": 0.5 + difference, "difference": difference, "low": difference - 0.1, "high": difference + 0.1,
            "gained": 9, "lost": 4, "test": "permutation", "p": p, "p_holm": p, "odds": None, "dz": 0.2,
            "smallest": 0.15, **fields}


def said(cells, *pairs, results=(), **more):
    """The sentences by what they are about; without pairs the summary has no comparisons."""
    summary = {"comparisons": {"metric": "unified", "pairs": list(pairs), "notes": []} if pairs else None, **more}
    found = verdicts(summary, entrants(table(cells, ["unified"])), list(results))
    return {verdict.about: " ".join(verdict.lines) for verdict in found}
