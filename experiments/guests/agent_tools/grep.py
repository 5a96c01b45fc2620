"""The tool `grep`: lines of the documents that match a regular expression.

RE2 matches in linear time. The text is searched in blocks, so that a pattern for which RE2 needs its slow automaton
stops at the deadline too.
"""
from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Annotated, Any

from pydantic import Field

from ragbed.agents.tools import ToolOutput
from ragbed.documents.types import Chunk
from ragbed.experiments.guests.agent_tools.arguments import ToolFailure
from ragbed.experiments.guests.agent_tools.corpora import Corpus
from ragbed.experiments.guests.agent_tools.corpus_text import CorpusText, read_corpus, show, show_span
from ragbed.experiments.guests.agent_tools.reading import Name, ToolContext

_SECONDS = 2.0  # for one search
_BLOCK = 1 << 17  # bytes that are searched between two looks at the clock
_MAX_PROGRAM = 10_000  # instructions of a compiled pattern
_COUNTED, _SHOWN, _SHOWN_EACH = 1_000, 30, 5  # lines that are counted, shown, and shown of each document
_MOST_CONTEXT = 5  # lines around a match
_NAMED = 20  # documents whose matches are counted by name
_MAX_LINE = 600  # characters of a line; of a longer one, the part around the match is shown
_NO_CASE = re.compile(r"\\[pP]\{?\^?\w+\}?|\\.|\(\?P?<\w+>|\[:\w+:\]")  # parts of a pattern whose case has a meaning
_MAX_MISSED = 2_000  # lines with a required text that do not match, after which it is not looked for
_UNREAD = re.compile(r"\\[^\WbBdDwWsSAz]|\(\?[^:]")  # what `find_required_text` does not read
_TOKEN = re.compile(
    r"(?P<other>\[\^?\]?(?:\\.|\[:\w+:\]|[^\]\\])*\]|\\\w|[.^$])|(?P<open>\((?:\?:)?)|(?P<close>\))|(?P<bar>\|)"
    r"|(?P<repeat>[*+?]|\{\d*,?\d*\})|(?P<character>\\?.)", re.DOTALL)

Match = tuple[int, int]
"""The bytes of the first match in a line."""


def grep(within: ToolContext,
         pattern: Annotated[str, Field(min_length=1, max_length=1_000, description=(
             "Regular expression in RE2 syntax. Case is ignored unless the pattern has a capital letter."))],
         document: Annotated[Name, Field(description="Search only this document; leave it out to search all.")] = "",
         context: Annotated[int, Field(ge=0, le=1_000, description=(
             "Number of lines to show before and after each match, at most 5."))] = 0) -> ToolOutput:
    """Find the lines of the documents that match a regular expression."""
    text = read_corpus(within.corpus)
    only = text.find(document) if document else None
    first, end = (0, text.starts[-1]) if only is None else (text.starts[only], text.starts[only + 1])
    found: dict[int, list[Match]] = {}
    count, ended = 0, ""
    for match in find_lines(compile_pattern(pattern), text.data, first, end, time.monotonic() + _SECONDS):
        if match is None:
            ended = f" The search stopped after {_SECONDS:g} seconds and is incomplete; use a simpler pattern."
            break
        found.setdefault(text.document_at(match[0]), []).append(match)
        if (count := count + 1) == _COUNTED:
            ended = " There are more; use a longer pattern."
            break
    if not count:
        return ToolOutput((f"No line matches.{ended}",))
    each = _SHOWN if only is not None else _SHOWN_EACH
    shown = [(number, match) for number, matches in found.items() for match in matches[:each]][:_SHOWN]
    names = [f"{show(text.entries[number].source)} ({len(matches)})"
             for number, matches in islice(found.items(), _NAMED)]
    counted = f"{count:,} matching {'line' if count == 1 else 'lines'} in " + ", ".join(
        [*names, *([f"{len(found) - _NAMED:,} more documents"] if len(found) > _NAMED else [])])
    left = f" Shown: {len(shown)}, at most {each} of each document." if len(shown) < count else ""
    parts = [part for number in dict.fromkeys(number for number, _ in shown) for part in _show(
        within.corpus, text, number, [match for one, match in shown if one == number], min(context, _MOST_CONTEXT))]
    return ToolOutput((f"{counted}.{left}{ended}", *parts))


def compile_pattern(pattern: str) -> tuple[Any, Any]:
    """Compile a pattern that matches within lines, and a text that every match contains; None without such a text.
    Raises ToolFailure if the pattern is not valid or too large."""
    import re2

    options = re2.Options()
    options.never_nl = options.never_capture = True
    options.log_errors = False
    plain = pattern.removeprefix("(?i)")
    options.case_sensitive = plain == pattern and any(map(str.isupper, _NO_CASE.sub("", pattern)))
    try:
        re2.compile(pattern, options)  # its error shows the pattern as given
        compiled = re2.compile(f"(?m){plain}", options)
    except re2.error as error:
        why = error.args[0].decode(errors="replace") if isinstance(error.args[0], bytes) else str(error)
        raise ToolFailure(f"argument pattern: {why[:120]}; RE2 has no look-around and no back-references") from None
    if compiled.programsize > _MAX_PROGRAM:
        raise ToolFailure("argument pattern: it is too large; use fewer or smaller repetitions")
    required = find_required_text(plain)
    return compiled, re2.compile(re2.escape(required), options) if required else None


def find_required_text(pattern: str) -> str:
    """Return a text of three or more characters that every match of a pattern contains. It is empty if none is found,
    or if the pattern begins with it, because RE2 then finds it by itself."""
    if _UNREAD.search(pattern):
        return ""
    best, run, depth = "", "", 0
    for token in _TOKEN.finditer(pattern):
        kind = token.lastgroup
        if kind == "character" and not depth:
            run += token[0][-1]
            continue
        if kind == "bar" and not depth:
            return ""
        depth += (kind == "open") - (kind == "close")
        run = run[:-1] if kind == "repeat" and token[0][0] != "+" else run
        best, run = max(best, run, key=len), ""
    best = max(best, run, key=len).lstrip("ksKS")  # letters with a third form, which RE2 cannot skip to
    return best if len(best) > 2 and not pattern.startswith(best) else ""


def find_lines(compiled: tuple[Any, Any], data: Any, first: int, end: int, until: float) -> Iterator[Match | None]:
    """Yield the first match of each matching line that is not blank, or None and stop if the time `until` has come."""
    pattern, required = compiled
    missed = 0
    while first < end:
        if time.monotonic() > until:
            yield None
            return
        stop = data.find(b"\n", min(first + _BLOCK, end) - 1, end) + 1 or end  # a block ends with a line
        if required is not None and missed < _MAX_MISSED:
            if (near := required.search(data, first, end)) is None:
                return
            first = data.rfind(b"\n", first, near.start()) + 1 or first
            stop = data.find(b"\n", near.end(), end) + 1 or end
        found = pattern.search(data, first, stop)
        if found is None or found.start() >= stop:
            first = stop
            missed += 1
            continue
        line_end = data.find(b"\n", found.start(), stop)
        first = (stop if line_end < 0 else line_end) + 1
        if data[data.rfind(b"\n", 0, found.start()) + 1:first].strip():
            yield found.span()


def _show(corpus: Corpus, text: CorpusText, number: int, matches: Sequence[Match], context: int) -> list[str | Chunk]:
    """Return the lines of matches in one document, with `context` lines around each. Lines that overlap are joined."""
    entry, at, place = text.entries[number], text.starts[number], 0  # `place` is the code point at the byte `at`
    rendering = corpus.document(entry.id).text(corpus.format)
    windows: list[tuple[int, int]] = []
    for start, end in matches:
        line = text.data.rfind(b"\n", at, start) + 1 or at
        place, at = place + len(text.data[at:line].decode()), line
        first = place + len(text.data[at:start].decode(errors="ignore"))
        window = _window(rendering, first, first + len(text.data[start:end].decode(errors="ignore")), context)
        if windows and window[0] <= windows[-1][1]:
            windows[-1] = windows[-1][0], window[1]
        else:
            windows.append(window)
    return [part for window in windows for part in show_span(corpus, entry.id, *window)]


def _window(text: str, start: int, end: int, context: int) -> tuple[int, int]:
    """Return the span of the line of a match with `context` lines before and after; or, of a long line, the words
    around the match."""
    first = text.rfind("\n", 0, start) + 1
    last = text.find("\n", start) % (len(text) + 1)  # the end if there is no further line
    if last - first > _MAX_LINE:
        begin = max(first, start - _MAX_LINE // 2)
        stop = min(last, begin + _MAX_LINE)
        begin = text.find(" ", begin, start) + 1 or begin if begin > first else first
        return begin, max(text.rfind(" ", end, stop), 0) or stop if stop < last else last
    for _ in range(context):
        first = text.rfind("\n", 0, max(first - 1, 0)) + 1
        last = text.find("\n", last + 1) % (len(text) + 1) if last < len(text) else last
    return first, last
