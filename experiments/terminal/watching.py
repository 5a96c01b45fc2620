"""A question in the terminal while it is answered: what the model says as it comes, and each step beside it."""
from __future__ import annotations

from typing import Any

from experiments.terminal.display import note, print_json, write


def as_lines(event: dict[str, Any]) -> None:
    """Each event as JSON on a line of its own, for programs."""
    print_json(event, indent=None)


class Watched:
    """Replies on stdout, piece by piece, and steps, decisions and reasoning on stderr.

    Of calls that are made together one is shown as it comes, and what the others say is kept until it ended.
    """

    def __init__(self) -> None:
        self._shown: int | None = None
        self._waiting: dict[int, list[dict[str, Any]]] = {}
        self._begun = {False: True, True: True}  # whether the next piece begins a line: of stdout, and of stderr

    def __call__(self, event: dict[str, Any]) -> None:
        call = event.get("call")
        if call is None:
            self._tell(event)
        elif self._shown in (None, call):
            self._of_call(event)
        else:
            self._waiting.setdefault(call, []).append(event)

    def _of_call(self, event: dict[str, Any]) -> None:
        self._shown = event["call"]
        if event["event"] in ("token", "reasoning"):
            stderr = event["event"] == "reasoning"
            self._end_line(not stderr)
            self._begun[stderr] = event["text"].endswith("\n")
            write(event["text"], stderr)
            return
        self._tell(event)
        if event["event"] == "reply":
            self._shown = None
            self._next()

    def _next(self) -> None:
        """Show what the call said that began first of those that wait."""
        if self._waiting:
            for event in self._waiting.pop(min(self._waiting)):
                self._of_call(event)

    def _tell(self, event: dict[str, Any]) -> None:
        line = _line(event)
        if line or event["event"] == "reply":
            self._end_line(False)
            self._end_line(True)
        if line:
            note(line)

    def _end_line(self, stderr: bool) -> None:
        if not self._begun[stderr]:
            write("\n", stderr)
            self._begun[stderr] = True


def _line(event: dict[str, Any]) -> str:
    """What happened in one line; nothing where the pieces of a reply say it."""
    failure, why = event.get("failure"), event.get("why")
    failed, because = f", failed: {failure}" if failure else "", f" ({why})" if why else ""
    match event["event"]:
        case "searching":
            return f"-- searches for {event['query']!r}"
        case "search":
            return f"-- found {event['found']}{failed}"
        case "asking":
            return f"-- call {event['call']}: {event['purpose']}, documents shown {event['shown']}"
        case "retry":
            return f"-- call {event['call']}: is made again, what it said so far is void{because}"
        case "reply" if failed:
            return f"-- call {event['call']}{failed}"
        case "decision":
            return f"-- decides: {event['what']}{because}"
    return ""
