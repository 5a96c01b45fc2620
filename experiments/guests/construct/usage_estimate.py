"""Estimate the maximum usage of a construction before its first call. A fake writer answers every stage and filter:
first with an invalid reply, then with a valid one of maximum length.
"""
from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import islice
from typing import Any

from ragbed.agents.models import describe_model
from ragbed.agents.scripted import drive, example_value, numbered_questions
from ragbed.experiments.guests.construct.construct_settings import ConstructSettings
from ragbed.experiments.guests.construct.stage_runner import stage_recipe
from ragbed.experiments.guests.construct.stages import Dropped, Library, Stage
from ragbed.experiments.guests.review.items import Item
from ragbed.experiments.guests.run_estimates.bounds import Use
from ragbed.strategies.catalogue import RETRIEVAL
from ragbed.strategies.token_estimates import estimate_prompt_tokens, estimate_tokens
from ragbed.strategies.types import Generate, Reply, Task

SAMPLE = 40  # instances to extrapolate from
_LIST_ITEMS = 8  # items that fill a list without a maximum length


def estimate_usage(settings: ConstructSettings, library: Library) -> dict[str, Any]:
    """Return the number of instances, and per model the maximum calls, tokens and price in US dollars (None if
    unknown). Tokens are extrapolated from a sample of instances.
    """
    instances = list(islice(settings.definition.instances(library), settings.max_tries))
    step = max(1, len(instances) // SAMPLE)
    sample = instances[::step][:SAMPLE]
    uses: dict[str, Use] = {}
    for one in sample:
        for role, use in _instance_usage(one, settings, library).items():
            uses[role] = uses.get(role, Use()) + use.times(len(instances) / len(sample))
    rows = []
    for name in dict.fromkeys(settings.roles.values()):
        use = sum((uses.get(role, Use()) for role, model in settings.roles.items() if model == name), Use())
        _, price = describe_model(name, settings.calls)
        rows.append({"model": name, "calls": round(use.calls), "prompt_tokens": round(use.prompt),
                     "completion_tokens": round(use.completion), "price": use.priced(price)})
    return {"kind": settings.kind, "asked_for": settings.n, "instances": len(instances),
            "documents": len(library.documents), "chunks": len(library.chunks), "models": rows}


def _instance_usage(one: Item, settings: ConstructSettings, library: Library) -> dict[str, Use]:
    """Return the usage of one instance by role. If a stage drops it because of a fake reply, count the maximum calls of
    all later stages."""
    uses: dict[str, Use] = {}
    items, kind = [one], settings.definition
    for number, stage in enumerate(kind.stages, 1):
        results = [_play(stage, item, settings, library, uses) for item in items]
        if any(isinstance(found, Dropped) for found in results):
            calls = sum(step.calls for step in (*kind.stages[number:], *kind.filters)) * kind.max_items
            made, most = sum(uses.values(), Use()), settings.limits.max_tokens
            each = Use(calls, calls * made.prompt / max(made.calls, 1), calls * most)
            return {role: uses.get(role, Use()) + each for role in settings.roles} if made.calls else uses
        items = [each for found in results for each in (found if isinstance(found, list) else [found])][:kind.max_items]
    for item in items:
        for stage in kind.filters:
            result = _play(stage, item, settings, library, uses)
            item = result if isinstance(result, Item) else item
    return uses


def _play(stage: Stage, item: Item, settings: ConstructSettings, library: Library, uses: dict[str, Use]) -> Any:
    result: list[Any] = []

    def replies(calls: Sequence[Generate]) -> list[Reply]:
        found = []
        for call in calls:
            role = call.purpose.partition(":")[0]
            most = call.max_tokens or settings.limits.max_tokens
            uses[role] = uses.get(role, Use()) + Use(1, estimate_prompt_tokens(call), most)
            found.append(_reply(call, most))
        return found

    limits = settings.limits.model_copy(update={"calls": max(stage.calls, 1)})
    drive(lambda task: stage_recipe(stage, item, library, result), Task(item.id, item.id, RETRIEVAL["none"]), replies,
          lambda searches: [library.chunks[:search.k or SAMPLE] for search in searches], limits)
    return result[0] if result else None


def _reply(call: Generate, most: int) -> Reply:
    """Answer a structured call with an invalid reply, and its repair with a valid reply."""
    if call.schema is None:
        return Reply("[1] An answer.")
    if not call.purpose.endswith("repaired"):
        return Reply(numbered_questions(most))
    text = json.dumps(example_value(call.schema, "What do the documents say of it?", most=True, items=_LIST_ITEMS))
    filled = text + " " * max(0, most - estimate_tokens(text))
    return Reply(filled, parsed=json.loads(text))
