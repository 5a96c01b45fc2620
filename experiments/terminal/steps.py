"""Show the steps of an answer, and chunks: as text and as JSON rows."""
from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from textwrap import wrap
from typing import Any

from ragbed.agents.types import (
    DecisionStep,
    GenerateStep,
    SearchStep,
    Step,
    ToolStep,
    describe_tool_call,
    message_to_json,
)
from ragbed.documents.types import Chunk
from ragbed.experiments.formatting import plural
from ragbed.experiments.terminal.display import console, say
from ragbed.retrieval.index import Index
from ragbed.retrieval.types import Hit

MAX_TEXT = 20_000  # characters of a reply that a terminal shows; --json has all


def hit_row(hit: Hit, index: Index) -> dict[str, Any]:
    """Return a hit with its source, as `search --json` prints it."""
    return {"rank": hit.rank, "score": round(hit.score, 6), "found_by": hit.found_by, **chunk_row(hit.chunk, index)}


def chunk_row(chunk: Chunk, index: Index) -> dict[str, Any]:
    """Return a chunk with its source's path and its first and last page, counted from 1."""
    return {"chunk": chunk.id, "document": index.source_of(chunk.document), "format": chunk.format,
            "pages": list(chunk.pages) if chunk.pages else None, "start": chunk.start, "end": chunk.end,
            "text": chunk.content}


def place(row: dict[str, Any]) -> str:
    """Return the place of a chunk, such as `report.pdf, pages 3-4`."""
    pages = row["pages"]
    if not pages:
        return str(row["document"])
    return f"{row['document']}, " + (f"page {pages[0]}" if pages[0] == pages[1] else f"pages {pages[0]}-{pages[1]}")


def step_row(step: Step, prompts: bool = True) -> dict[str, Any]:
    """Return a step as JSON, with its messages or only their number."""
    if isinstance(step, SearchStep):
        return {"kind": "search", **asdict(step)}
    if isinstance(step, DecisionStep):
        return {"kind": "decision", **asdict(step)}
    if isinstance(step, ToolStep):
        return {"kind": "tool", **asdict(step)}
    messages = [message_to_json(message) for message in step.messages]
    return {"kind": "generate", **asdict(step), "messages": messages if prompts else len(messages)}


@dataclass(frozen=True, slots=True)
class PassagePlaces:
    """Where the passages of an answer come from.

    Attributes:
        of: places by passage number.
        searched: whether they were found by a search rather than placed by the condition.
        listed: the cell that already lists them.
    """

    of: Mapping[int, str]
    searched: bool = True
    listed: str | None = None


def show_steps(steps: Sequence[Step], places: PassagePlaces, prompts: bool = True) -> None:
    """Print the steps of an answer, with or without messages."""
    for count, step in enumerate(steps, 1):
        if isinstance(step, SearchStep):
            _show_search(count, step, places)
        elif isinstance(step, DecisionStep):
            say(f"== step {count}: decides: {step.what}{f' ({step.why})' if step.why else ''}")
        elif isinstance(step, ToolStep):
            say(f"== step {count}: calls {step.tool} {json.dumps(step.arguments, ensure_ascii=False)}"
                + (f", failed: {step.failure.message}" if step.failure else ""))
            for part in step.parts:
                for line in part.splitlines() if isinstance(part, str) else [f"[{part}] {places.of[part]}"]:
                    say(f"   {line}")
        else:
            _show_call(count, step, prompts)


def _show_search(count: int, step: SearchStep, places: PassagePlaces) -> None:
    found = f"{'found ' if places.searched else ''}{list(step.found)}"
    say(f"== step {count}: {'search' if places.searched else 'passages provided'}, "
        f"{f'failed: {step.failure.message}' if step.failure else found}")
    asked = wrap(f"for {step.query!r}", max(20, console().width - 3)) if places.searched else []
    of = [f"the passages as in {places.listed}"] if places.listed and step.found else [
        f"[{number}] {places.of[number]}" for number in step.found]
    for line in (*asked, *of):
        say(f"   {line}")


def _show_call(count: int, step: GenerateStep, prompts: bool) -> None:
    say(f"== step {count}: {step.purpose}, {plural(len(step.messages), 'message')}, documents shown {list(step.shown)}")
    if prompts:
        for message in step.messages:
            say("\n".join([f"-- {message.role}{f' for {message.call_id}' if message.call_id else ''}",
                           *filter(None, [message.content]),
                           *(cut(describe_tool_call(call)) for call in message.tool_calls)]))
    if step.reasoning:
        say(f"-- reasoning\n{cut(step.reasoning)}")
    why = step.finish_reason or (f"{step.failure.kind}: {step.failure.message}" if step.failure else "no reason given")
    say(f"-- reply ({why})\n{cut(step.text)}")
    for call in step.tool_calls:
        say(f"   {cut(describe_tool_call(call))}")


def cut(text: str) -> str:
    """Cut text that is too long for a terminal."""
    more = len(text) - MAX_TEXT
    return text if more <= 0 else f"{text[:MAX_TEXT]}… ({more} more characters, with --json)"
