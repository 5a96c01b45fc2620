"""What tells the settings of two runs apart, in one line."""
from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import yaml

_SHOWN, _BEFORE = 60, 20  # characters of a value, and those before where two values part
# Where something stands; what stands there is compared by its content.
_PLACES = frozenset({"out", "exemplars"})
# How fast and how far a run goes, not what it is.
_PACE = ("budget", "concurrency", "calls.calls")
_QUESTIONS = frozenset({"benchmark.path", "benchmark.corpus", "benchmark.novels", "benchmark.topics"})


def difference(known: str, now: str, same_questions: bool) -> str | None:
    """The first setting that differs, with both values; None where it is one run all the same.

    A run or its data may be moved, and it may go on faster, slower or with another budget.

    Args:
        known, now: resolved settings, as YAML.
        same_questions: whether both are about the same questions, wherever these stand.
    """
    try:
        old, new = yaml.safe_load(known), yaml.safe_load(now)
    except yaml.YAMLError:
        old = None
    if not isinstance(old, dict):
        return "its config.yaml is damaged"
    passed_over = _PLACES | (_QUESTIONS if same_questions else frozenset())
    return next((f"{place} {_apart(before, after)}" for place, before, after in _differing(old, new)
                 if place not in passed_over and not _is_pace(place)), None)


def _is_pace(place: str) -> bool:
    return any(place == one or place.startswith(f"{one}.") for one in _PACE)


def _differing(old: Any, new: Any, place: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Every setting that differs, by its place in dotted keys."""
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        inside = [(str(key), old.get(key), new.get(key)) for key in dict.fromkeys([*old, *new])]
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new) and all(
            isinstance(item, Mapping) for item in (*old, *new)):
        inside = [(str(at), *pair) for at, pair in enumerate(zip(old, new, strict=True))]
    else:
        if old != new:
            yield place, old, new
        return
    for key, before, after in inside:
        yield from _differing(before, after, f"{place}.{key}" if place else key)


def _apart(old: Any, new: Any) -> str:
    """Both values; of long ones, what stands around where they part."""
    texts = [json.dumps(value, ensure_ascii=False, default=str) for value in (old, new)]
    parts = next((at for at, (ours, theirs) in enumerate(zip(*texts, strict=False)) if ours != theirs),
                 min(map(len, texts)))
    start = max(parts - _BEFORE, 0) if max(map(len, texts)) > _SHOWN else 0
    was, now = (("..." if start else "") + text[start:start + _SHOWN] + ("..." if len(text) > start + _SHOWN else "")
                for text in texts)
    return f"was {was}, is {now}"
