"""What failed in a run, for its user to mend."""
from __future__ import annotations

from experiments.runs.store import RunFolder

_SHOWN = 300  # characters of a message
_NO_REPLY = ("error", "timeout", "budget", "too_long")


def on_failures(folder: RunFolder, retry: str) -> list[str]:
    """A line for each kind of failure, with the first message of it, and how to ask again.

    Args:
        retry: what asks again, for the start of a sentence.
    """
    counts: dict[str, int] = {}
    messages: dict[str, str] = {}
    again = False
    for kind, message, outcome in folder.failures():
        counts[kind] = counts.get(kind, 0) + 1
        messages.setdefault(kind, _short(message))
        again = again or outcome in ("error", "timeout")
    lines = [f"{count} failed with {kind}, the first: {messages[kind]}" for kind, count in counts.items()]
    return [*lines, f"{retry} asks them again"] if again else lines


def all_failed(folder: RunFolder) -> bool:
    """Whether every question ended without any reply."""
    return all(sum(cell["outcomes"][outcome] for outcome in _NO_REPLY) == cell["n"]
               for cell in folder.summary()["cells"])


def _short(message: str) -> str:
    line = " ".join(message.split())
    return line if len(line) <= _SHOWN else line[:_SHOWN - 3] + "..."
