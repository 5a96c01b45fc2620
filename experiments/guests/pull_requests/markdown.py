"""The verdict of a gate as GitHub's markdown, for a comment of a pull request.

Texts of documents, questions, models and settings are written as code, so that GitHub shows them without links,
mentions, pictures or HTML.
"""
from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from html import escape
from typing import Any
from urllib.parse import quote, urlencode

from ragbed.documents.errors import SettingsError
from ragbed.experiments.analysis.causes import causes_by_name
from ragbed.experiments.formatting import estimate, format_price, plural
from ragbed.experiments.guests.pull_requests.verdict import CellVerdict, Flip, GateResult, code, describe, title

MARKER = "<!-- ragbed-gate -->"  # by which the action finds its comment
MOST = 65_536  # GitHub's limit for a comment, in characters
TITLES = {"worse": "worse", "not_compared": "not compared", "cannot_tell": "cannot tell", "better": "better",
          "equal": "no difference that matters", "unchanged": "unchanged"}
_CELLS, _FLIPS, _NOTES, _NAME = 20, 10, 12, 60  # most cells, changed answers, notes, and characters of a name
_URL = re.compile(r"https?://[^\s<>\"]+")


def check_url(url: str) -> str:
    """Return the address of a report with characters that could end a link escaped. Raises SettingsError if it is not
    an http address."""
    if not _URL.fullmatch(url):
        raise SettingsError(f"--report-url {url!r}: expected an address that begins with https://")
    return quote(url, safe="/:?#[]@!$&'*+,;=%~-._")


def write_markdown(result: GateResult, report_url: str | None = None) -> str:
    """Return the text: the verdict, a table of cells, changed answers with their causes, and what was not asked."""
    lines = [MARKER, f"### ragbed: {TITLES[result.state]}", "", *_verdicts(result), "", *_table(result), "",
             *_flips(result, report_url), *_cost(result, report_url)]
    if result.notes:
        shown = [f"- {note}" for note in result.notes[:_NOTES]]
        more = len(result.notes) - len(shown)
        lines += ["", *shown, *([f"- and {plural(more, 'more note')} in the JSON"] if more else [])]
    return "\n".join(lines)[:MOST - 1] + "\n"


def write_failure(error: Exception) -> str:
    """Return the text for a comparison that was not possible."""
    return f"{MARKER}\n### ragbed: not compared\n\n{code(str(error), 1_000)}\n"


def _verdicts(result: GateResult) -> Iterator[str]:
    several = len(result.cells) > 1
    for cell in result.cells[:_CELLS]:
        said = describe(cell, result)
        yield f"- {code(cell.head, _NAME)} – {said}" if several else f"**{said}**"
    if result.fails:
        yield from ("", f"The check fails, because its policy is `fail: {result.policy.fail}`.")


def _table(result: GateResult) -> Iterator[str]:
    yield f"Scores: {title(result.metric)}, with 90 % intervals\n"
    yield "| cell | questions | main | branch | difference | verdict |"
    yield "|---|---:|---:|---:|---:|---|"
    for cell in result.cells[:_CELLS]:
        name = code(cell.head, _NAME) + ("" if cell.base == cell.head else f" (main: {code(cell.base, _NAME)})")
        figures = ["-" if value is None else f"{value:z.2f}" for value in (cell.before, cell.after)]
        yield (f"| {name} | {cell.n} of {cell.of} | {' | '.join(figures)} | "
               f"{estimate(cell.difference, cell.low, cell.high, '+z.2f')} | {TITLES[cell.state]} |")
    if len(result.cells) > _CELLS:
        yield f"\n{plural(len(result.cells) - _CELLS, 'more cell')} in the JSON."


def _flips(result: GateResult, url: str | None) -> Iterator[str]:
    left = _FLIPS
    for cell in result.cells[:_CELLS]:
        lost, gained = ([one for one in cell.flips if (one.after < one.before) is down] for down in (True, False))
        if not (lost or gained):
            continue
        yield f"<details><summary>{_counted(cell, lost, gained)}</summary>\n"
        shown = [*lost, *gained][:left]
        left -= len(shown)
        for one in shown:
            yield f"- {_described(one, result, url)}"
        if more := len(lost) + len(gained) - len(shown):
            yield f"- and {more:,} more in the JSON"
        yield "\n</details>\n"


def _counted(cell: CellVerdict, lost: list[Flip], gained: list[Flip]) -> str:
    whole = all({one.before, one.after} <= {0, 1} for one in cell.flips)
    words = ("right → wrong", "wrong → right") if whole else ("lower", "higher")
    return f"<code>{escape(code(cell.head, _NAME)[1:-1])}</code>: {len(lost)} {words[0]}, {len(gained)} {words[1]}"


def _described(one: Flip, result: GateResult, url: str | None) -> str:
    """Return a changed answer: its question, both scores, and the cause of the worse answer."""
    worse = one.cause_after if one.after < one.before else one.cause_before
    known = causes_by_name().get(worse or "")
    cause = f", {'now' if one.after < one.before else 'before'}: {known.title}" if known else ""
    link = f" ([open]({url.partition('#')[0]}#questions?{urlencode({'open': one.question})}))" if url else ""
    link = link.replace("+", "%20") if url else ""
    return f"{code(result.texts.get(one.question, one.question))} {one.before:g} → {one.after:g}{cause}{link}"


def describe_cost(spent: Mapping[str, Any]) -> str:
    """Return the number, tokens and price of the new calls in words."""
    return f"{plural(spent['calls'], 'new call')}, {plural(spent['tokens'], 'token')}, " + (
        "price unknown" if spent["price"] is None else format_price(spent["price"]))


def _cost(result: GateResult, url: str | None) -> Iterator[str]:
    spent = result.spent
    report = f" [Report]({url})." if url else ""
    yield (f"{describe_cost(spent)}; all other answers are from recorded calls.{report}" if spent["calls"] else
           f"No new calls.{report}")
