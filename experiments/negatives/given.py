"""A question with what was mined for it."""
from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace

from experiments.negatives.types import Chosen, Wanted
from experiments.question import Mined, Question


def with_negatives(wanted: Wanted, chosen: Chosen, mined: Mapping[str, Mined], seed: int) -> Question:
    """The question as it was, with negatives among its chunks and further ones behind these.

    Where any fill it up, the order of its chunks is drawn, so that gold has no place of its own. The benchmark's own
    negatives, where they are kept, follow the mined ones; no dose has them, since nobody knows how hard they are.
    """
    question = wanted.question
    given = (*wanted.kept, *chosen.chunks[:chosen.fill])
    if chosen.fill:
        given = tuple(random.Random(f"{seed}:{question.id}:given").sample(given, len(given)))
    further = chosen.chunks[chosen.fill:]
    there = {chunk.id for chunk in (*given, *further)}
    own = tuple(chunk for chunk in question.negatives if chunk.id not in there) if wanted.keeps_own else ()
    return replace(question, given=given, pool=question.pool if wanted.keeps_own else (),
                   negatives=(*further, *own), mined=mined)
