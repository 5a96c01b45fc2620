"""When the steps of a turn began and ended."""
from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True)
class TurnTimes:
    """Start and end times of a turn and its steps, in seconds since the epoch.

    Attributes:
        first_text: when the first text of the answer was sent.
        searches, tools, calls: start of each, and its end if it has ended; calls are listed by number.
    """

    started: float = field(default_factory=time.time)
    first_text: float | None = None
    searches: list[list[float]] = field(default_factory=list)
    tools: list[list[float]] = field(default_factory=list)
    calls: dict[int, list[float]] = field(default_factory=dict)

    def restart(self) -> None:
        """Forget the steps so far, because another model answers."""
        self.searches, self.tools, self.calls = [], [], {}

    def add(self, event: Mapping[str, Any]) -> None:
        """Note the time of an event."""
        match event["event"]:
            case "text" if self.first_text is None:
                self.first_text = time.time()
            case "searching":
                self.searches.append([time.time()])
            case "search":
                next((one for one in self.searches if len(one) == 1), []).append(time.time())
            case "calling":
                self.tools.append([time.time()])
            case "tool":
                next((one for one in self.tools if len(one) == 1), []).append(time.time())
            case "asking":
                self.calls[event["call"]] = [time.time()]
            case "reply":
                self.calls[event["call"]].append(time.time())
