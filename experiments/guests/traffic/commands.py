"""`ragbed questions`, `ragbed copy-traffic` and `ragbed forget`."""
from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from ragbed.experiments.commands.options import AsJson, refuse


def questions(
        source: Annotated[Path, typer.Option("--from", metavar="SOURCE", help=(
            "Folder of `ragbed serve --traffic`, or a file of traces."))],
        out: Annotated[Path, typer.Option("--out", metavar="FILE", help="JSON Lines file to write; it is replaced.")],
        thumb: Annotated[Literal["up", "down", "any"], typer.Option(help="Only answers with this thumb.")] = "any",
        json: AsJson = False) -> None:
    """Turn user feedback on served answers, or traces, into test questions.

    An answer with a thumb up becomes a candidate for the gold answer, and its citations for the gold evidence. The
    feedback becomes tags. Traces are JSON of OpenTelemetry, Langfuse or promptfoo; their answers become tags. Check the
    questions with `ragbed review`, and test a fix with `ragbed run`.
    """
    from ragbed.experiments.formatting import plural
    from ragbed.experiments.guests.question_files.traces import questions_from_traces
    from ragbed.experiments.guests.traffic.feedback import questions_from_feedback
    from ragbed.experiments.runs.store import write_lines
    from ragbed.experiments.terminal.display import print_result

    traffic = source.is_dir() or source.suffix == ".sqlite" or not source.exists()
    lines = questions_from_feedback(source, thumb) if traffic else questions_from_traces(source)
    write_lines(out, lines)
    counts = {name: sum(line["tags"].get("feedback") == name for line in lines) for name in ("up", "down")}
    print_result(json, {"from": str(source), "questions": str(out), "n": len(lines), **counts}, (
        f"{out}: {plural(len(lines), 'question')}, {counts['up']} with a thumb up and {counts['down']} with a thumb "
        f"down; review them with `ragbed review {out} --index INDEX`"))


def copy_traffic(
        url: Annotated[str, typer.Argument(metavar="URL", help="The database: postgresql://USER@HOST/DATABASE.")],
        out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Folder to write; it replaces a copy.")],
        json: AsJson = False) -> None:
    """Copy the traffic of servers that share a PostgreSQL database to a folder.

    `ragbed show`, `report`, `compare` and `questions` read the folder like one of `ragbed serve --traffic`. The
    password can be in PGPASSWORD.
    """
    from ragbed.experiments.formatting import plural
    from ragbed.experiments.guests.traffic import postgres_traffic
    from ragbed.experiments.guests.traffic.traffic_tables import SCHEMA, VERSION
    from ragbed.experiments.terminal.display import print_result

    counts = postgres_traffic.copy_traffic(url, out, SCHEMA, VERSION)
    print_result(json, {"out": str(out), **counts}, (
        f"{out}: {plural(counts['threads'], 'thread')}, {plural(counts['turns'], 'answer')}, "
        f"{counts['feedback']:,} with feedback"))


def forget(
        traffic: Annotated[str, typer.Argument(metavar="TRAFFIC", help="Folder of --traffic, or postgresql://...")],
        user: Annotated[str | None, typer.Option("--user", metavar="NAME", help="All answers to this key.")] = None,
        thread: Annotated[str | None, typer.Option("--thread", metavar="ID", help="This conversation.")] = None,
        document: Annotated[str | None, typer.Option("--document", metavar="ID", help=(
            "All conversations in which an answer was shown this document."))] = None,
        index: Annotated[Path | None, typer.Option("--index", metavar="DIR", help=(
            "With --document: also remove it from this index. ID may be its file, too."))] = None,
        days: Annotated[float | None, typer.Option("--keep-days", min=0, metavar="N", help=(
            "All answers older than this. A conversation is as old as its last question."))] = None,
        json: AsJson = False) -> None:
    """Delete stored questions, answers, feedback and threads.

    Only their number, day and reason stay. A server that uses the folder must be stopped; a running server deletes by
    `DELETE /api/threads/ID`, `/api/users/NAME` and `/api/documents/ID`. Review files, exports, copies, backups and sent
    traces are out of reach.
    """
    import asyncio

    from ragbed.experiments.formatting import plural
    from ragbed.experiments.guests.traffic import forgetting
    from ragbed.experiments.terminal.display import note, print_result

    if (user, thread, document, days) == (None,) * 4:
        refuse("name what to forget: --user, --thread, --document or --keep-days")
    if index is not None and document is None:
        refuse("--index has no effect without --document")
    chosen, source = forgetting.Selection(user, thread, document, days), None
    if index is not None:
        found, source = asyncio.run(forgetting.forget_document(traffic, chosen, index))
    else:
        found = asyncio.run(forgetting.forget_traffic(traffic, chosen))
    if not found.answers:
        note("no stored answer is of what you named; check it" + (
            ": --document takes an id, as in the `evidence` of answers, and with --index also a file"
            if document and index is None else ""))
    removed = f"; {source} was removed from {index}: delete the file itself, or it comes back" if source else ""
    print_result(json, {"answers": found.answers, "threads": len(found.threads), "source": source}, (
        f"forgot {plural(found.answers, 'answer')} and {plural(len(found.threads), 'thread')}; their number, day and "
        f"reason stay{removed}"))
