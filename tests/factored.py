"""Runs of several factors with scores by hand or drawn, for tests of effects."""
from dataclasses import dataclass

import numpy as np

from ragbed.experiments.guests.effects.effects import estimate_effects
from ragbed.experiments.statistics import Clusters

BASE = {"benchmark": "b", "model": "m", "reasoning": "direct", "retrieval": None, "retriever": None,
        "rules": "grounded", "condition": "provided", "perturbation": None, "show": "question", "format": None,
        "repeat": 0, "seed": None}


@dataclass
class Row:
    scores: dict
    answerable: bool = True
    outcome: str = "answered"


def cells(**factors):
    """The product of the values, the last factor varying fastest."""
    found = [{}]
    for name, values in factors.items():
        found = [{**one, name: value} for one in found for value in values]
    return rows(*found)


def rows(*differing):
    return [{**BASE, **one, "id": str(place)} for place, one in enumerate(differing)]


def effects_of(run, values, metric="f1", clusters=None, answerable=None, scoring="corrected"):
    """Of cells by questions; None where there is no score."""
    answers = {row["id"]: {f"q{place:04}": Row({metric: None if value is None else float(value)},
                                               answerable is None or bool(answerable[place]))
                           for place, value in enumerate(line)} for row, line in zip(run, values, strict=True)}
    of = {f"q{place:04}": str(cluster) for place, cluster in enumerate(clusters if clusters is not None else [])}
    return estimate_effects(run, answers, Clusters(of), metric, scoring)


def by_name(found):
    return {**{one["factor"]: one for one in found["factors"]},
            **{tuple(one["factors"]): one for one in found["interactions"]}}


def simulated(rng, difficulty, each, effect=0.0, both=0.0):
    """Three ways under two conditions over 60 questions; `effect` of the last way, `both` with the last condition."""
    documents = 60 // each
    hard = np.repeat(rng.normal(0, difficulty, documents), each)
    values = np.array([0.5 + hard + np.repeat(rng.normal(0, 0.1 * (each > 1), documents), each)
                       + rng.normal(0, 0.2, 60) for _ in range(6)])
    values[4:] += effect
    values[5] += both
    return values


RUN = cells(reasoning=["a", "b", "c"], condition=["provided", "full"])
WAYS = cells(reasoning=["a", "b"], condition=["provided", "full"])


def under_both(values):
    """The scores of each way of `WAYS`, the same under both conditions: the ways differ as the two lines do."""
    return [line for line in values for _ in range(2)]
