"""How results of tools reach the model: in full, as their first lines, or as a handle that the model opens."""
from __future__ import annotations

import json
import re
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from ragbed.experiments.guests.agent.protocols import Result
from ragbed.experiments.guests.agent.reading import Call, example_call
from ragbed.strategies.parts.merging import concatenate
from ragbed.strategies.prompting import fill, frame_content, template
from ragbed.strategies.types import Action, Asked, Decision, Evidence, Passage, Task, ToolCall, ToolResult, ToolSpec

Delivery = Literal["inline", "digest", "file"]
READ = "read_result"  # the tool that opens a handle
_DIGEST, _PAGE = 400, 3_000  # characters of a digest and, at most, of a page; a longer passage has a page of its own
_IDLE = 2  # the loop ends after this many turns in a row that only repeat earlier calls, or hold no readable call

_READS = re.compile(r"(search\w*|list|grep|open)")  # tools whose results hold passages if they hold an answer

Part = str | Passage


@dataclass(slots=True)
class DeliveredTools:
    """The tools of `Task.tools`, with their results delivered in one of three ways, and `read_result` to open them.

    A passage counts as evidence in a prompt only if the prompt holds its whole text.

    Attributes:
        unread_calls: number of calls that could not be read.
    """

    task: Task
    delivery: Delivery = "inline"
    over: str = ""
    unread_calls: int = 0
    _pages: dict[str, list[tuple[Part, ...]]] = field(default_factory=dict)  # by handle
    _made: set[str] = field(default_factory=set)  # calls so far
    _last: tuple[str, ...] = ()  # tools of the last turn's calls
    _repeats: int = 0  # number of turns in a row, up to the last, that only repeat calls
    _unread: int = 0  # number of turns in a row, up to the last, without a readable call

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        parameters = {"type": "object", "properties": {"result": {"type": "string"}, "page": {"type": "integer"}},
                      "required": ["result"]}
        opens = ToolSpec(READ, template("agent_read_result"), parameters)
        return self.task.tools if self.delivery == "inline" else (*self.task.tools, opens)

    def accept(self, name: str, arguments: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """Return the arguments of a known tool, which checks them itself."""
        return arguments if any(spec.name == name for spec in self.specs) else None

    def perform(self, calls: Sequence[Call], shown: Evidence) -> Generator[Asked, Any, list[Result]]:
        self._last = tuple(call.tool for call in calls)
        asked: list[Action] = [ToolCall(call.tool, call.arguments or {}) for call in calls if call.tool != READ]
        returned = iter((yield asked) if asked else ())
        results, fresh = [], False
        for call in calls:
            key = json.dumps([call.tool, call.arguments], sort_keys=True)
            again, fresh = key in self._made, fresh or key not in self._made
            self._made.add(key)
            one = (yield from self._open(call.arguments or {}, shown)) if call.tool == READ else \
                self._deliver(next(returned), shown, call.tool)
            if again:  # what is in view already need not be listed
                note = " ".join([template("agent_repeated"), *(
                    fill("agent_other", call=example_call(spec)) for spec in self.specs if spec.name != call.tool)][:2])
                known = one.evidence and {*one.evidence} <= {*shown}
                one = replace(one, text=note if known else f"{one.text}\n{note}")
            results.append(one)
            shown = concatenate((shown, one.evidence))
        self._repeats = 0 if fresh else self._repeats + 1
        self.over = f"{_IDLE} turns in a row repeat earlier calls" if self._repeats >= _IDLE else ""
        return results

    def unread(self, call: Call) -> str:
        self.unread_calls += 1
        tools = ", ".join(spec.name for spec in self.specs)
        if call.id:  # a tool call of the server
            return fill("agent_unread_call", tools=tools)
        return fill("agent_unread", example=example_call(self.specs[0]), tools=tools)

    def progress(self, turn: int, turns: int) -> Decision:
        called, self._last = ", ".join(self._last), ()
        self._unread = 0 if called else self._unread + 1
        if self._unread >= _IDLE:
            self.over = f"{_IDLE} turns in a row hold no readable call"
        ends = bool(self.over) or turn + 1 == turns
        return Decision("stops" if ends else "goes on", self.over or (
            f"turn {turn + 1} of {turns} " + (f"called {called}" if called else "held no readable call")))

    def _deliver(self, result: ToolResult, shown: Evidence, tool: str) -> Result:
        if result.failure is not None:
            return self._show((f"Error: {result.failure.message}",), shown)
        if not any(part if isinstance(part, str) else True for part in result.parts):
            return Result(template("agent_nothing"))
        length = sum(map(_length, result.parts))
        if self.delivery == "inline" or length <= _DIGEST:
            one = self._show(result.parts, shown)
            return replace(one, informs=bool(one.evidence) or not _READS.fullmatch(tool))
        handle, pages = f"r{len(self._pages) + 1}", _paginate(result.parts)
        self._pages[handle] = pages
        count = f"{len(pages)} page{'s' * (len(pages) > 1)}"
        opens = fill("agent_handle", handle=handle, characters=str(length), pages=count)
        if self.delivery == "file":
            return Result(opens)
        begins = self._show(_beginning(result.parts), shown)
        return replace(begins, text=f"{begins.text}\n{opens}", informs=bool(begins.evidence))

    def _open(self, arguments: Mapping[str, Any], shown: Evidence) -> Generator[Asked, Any, Result]:
        handle, page = str(arguments.get("result", "")).strip()[:20], str(arguments.get("page", 1))
        pages = self._pages.get(handle, [])
        if not page.isdecimal() or not 1 <= int(page[:9]) <= len(pages):
            known = ", ".join(f"{one}, pages 1 to {len(kept)}" for one, kept in self._pages.items()) or "no results"
            return Result(fill("agent_no_page", known=known))
        yield Decision("opens a result", f"{handle}, page {int(page)} of {len(pages)}")
        one = self._show(pages[int(page) - 1], shown)
        title = fill("agent_page", page=str(int(page)), pages=str(len(pages)), handle=handle)
        return replace(one, text=f"{title}\n{one.text}", informs=True)

    def _show(self, parts: Sequence[Part], shown: Evidence) -> Result:
        """Write parts between the marks of documents. Passages that the conversation shows already are only named."""
        numbers = {passage.number for passage in shown}
        lines: list[str] = []
        for part in parts:
            if isinstance(part, str):
                lines.append(frame_content(part, self.task.framing))
            elif part.number in numbers and self.task.separators:
                lines.append(fill("agent_shown", number=str(part.number)))
            else:
                number = f"[{part.number}]\n" if self.task.separators else ""
                lines.append(f"{number}{frame_content(part.chunk.content, self.task.framing)}")
        text = "\n\n".join(lines)
        return Result(text if self.task.framing == "none" else f"<documents>\n{text}\n</documents>",
                      tuple(part for part in parts if isinstance(part, Passage)))


def _length(part: Part) -> int:
    return len(part if isinstance(part, str) else part.chunk.content)


def _paginate(parts: Sequence[Part]) -> list[tuple[Part, ...]]:
    """Return the parts on pages. Texts are cut, passages are not."""
    cut: list[Part] = []
    for part in parts:
        cut += [part[start:start + _PAGE] for start in range(0, len(part), _PAGE)] if isinstance(part, str) else [part]
    pages: list[tuple[Part, ...]] = [()]
    for part in cut:
        if pages[-1] and sum(map(_length, pages[-1])) + _length(part) > _PAGE:
            pages.append(())
        pages[-1] = (*pages[-1], part)
    return pages


def _beginning(parts: Sequence[Part]) -> tuple[Part, ...]:
    """Return the first parts that fit a digest, and the beginning of the next one as a text without a number."""
    kept: tuple[Part, ...] = ()
    left = _DIGEST
    for part in parts:
        if _length(part) > left:
            text = part if isinstance(part, str) else part.chunk.content
            return (*kept, f"{text[:left]}...") if left > _DIGEST // 4 else kept
        kept, left = (*kept, part), left - _length(part)
    return kept
