"""Tree of thought: propose steps, vote on them, extend the best, and answer from the best chain (Yao et al. 2023).

The search is breadth-first (the paper's Algorithm 1). One call per kept chain proposes several next steps. Votes across
all candidates decide which are kept, as in the paper's creative writing task. CReSt's published code instead rates each
candidate in a separate call, so its cost grows with their number.
"""
from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated

from pydantic import Field

from ragbed.strategies.answering import answer, ask, ask_for_answer, draft
from ragbed.strategies.parts.reading import read_list
from ragbed.strategies.prompting import fill_untrusted
from ragbed.strategies.reading import fold, read_answer
from ragbed.strategies.types import Decision, Evidence, Generate, Recipe, Reply, Task

_BEST = re.compile(r"best[^\w\n]{0,10}(?:candidate[^\w\n]{0,5})?(\d{1,3})", re.IGNORECASE)

Steps = tuple[str, ...]


def tree_of_thought(task: Task, *, depth: Annotated[int, Field(ge=1, le=10)] = 3,
                    breadth: Annotated[int, Field(ge=1, le=10)] = 2, branches: Annotated[int, Field(ge=1, le=10)] = 3,
                    votes: Annotated[int, Field(ge=1, le=20)] = 3,
                    temperature: Annotated[float, Field(gt=0, le=2)] = 0.7) -> Recipe:
    """Grow chains of steps level by level, keep the best by votes, and answer from the best.

    On each of `depth` levels, each of the `breadth` kept chains is extended in up to `branches` ways, and `votes` votes
    are drawn at `temperature` over all candidates. A chain without a new step stays a candidate. If no chain gets a new
    step, growing ends early.
    """
    evidence = yield from task.gather(task.question)
    kept: list[Steps] = [()]
    for level in range(1, depth + 1):
        proposed: list[Reply] = yield [_call(task, evidence, "propose", count=str(branches), steps=_shown(steps))
                                       for steps in kept]
        grown = _grown(kept, [read_list(one.text, task.question, branches) for one in proposed])
        if grown == kept:
            yield Decision("stops", f"no step was proposed at depth {level}")
            break
        candidates = "\n\n".join(f"Candidate {place}:\n{_shown(steps)}" for place, steps in enumerate(grown, 1))
        vote = _call(task, evidence, "vote", count=str(len(grown)), candidates=candidates)
        cast: list[Reply] = yield [replace(vote, sample=sample, temperature=temperature)
                                   for sample in range(votes if len(grown) > 1 else 0)]
        counts = Counter(voted(one.text, len(grown)) for one in cast)
        order = sorted(range(1, len(grown) + 1), key=lambda place: -counts[place])[:breadth]
        kept = [grown[place - 1] for place in order]
        yield Decision("keeps", _told(order, len(grown), counts))
    if not kept[0]:
        return (yield from answer(task, "chain_of_thought", evidence, "no_steps"))
    call = ask_for_answer(task, fill_untrusted("tree_of_thought_answer", steps=_shown(kept[0])), evidence)
    return (yield from draft(call, task, last=True))


def _call(task: Task, evidence: Evidence, purpose: str, **fields: str) -> Generate:
    return ask(task, fill_untrusted(f"tree_of_thought_{purpose}", **fields), evidence, purpose)


def _grown(kept: Sequence[Steps], proposed: Sequence[list[str]]) -> list[Steps]:
    """Extend each chain by each of its new steps, or keep it if there is none. Drop duplicates."""
    found: dict[tuple[str, ...], Steps] = {}
    for steps, following in zip(kept, proposed, strict=True):
        known = [fold(step) for step in steps]
        new = [step for step in following if fold(step) not in known]
        for longer in [(*steps, step) for step in new] or [steps]:
            found.setdefault(tuple(map(fold, longer)), longer)
    return list(found.values())


def voted(text: str, count: int) -> int | None:
    """Read a vote: the number, from 1, of the candidate that it calls best last. A reply may be just the number."""
    said = read_answer(text)[0]
    numbers_said = _BEST.findall(said) or ([said.strip(" .*")] if said.strip(" .*").isdecimal() else [])
    place = int(numbers_said[-1][:4]) if numbers_said else 0
    return place if 1 <= place <= count else None


def _shown(steps: Steps) -> str:
    return "\n".join(f"- {step}" for step in steps) or "none yet"


def _told(order: Sequence[int], count: int, counts: Counter[int | None]) -> str:
    unread = f"; {counts[None]} votes not understood" if counts[None] else ""
    shown = ", ".join(f"{place} with {counts[place]}" for place in order)
    return f"of {count} candidates {shown} of {counts.total()} votes{unread}" if counts else f"the only one of {count}"
