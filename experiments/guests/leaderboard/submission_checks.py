"""Check a submission, which is a cassette that nobody vouches for, by replaying it in a process of its own.

The owner's settings decide the benchmark and how answers are scored. A submission is accepted only if its replay over
the owner's questions gives its results hash, uses all that it holds, and exports to the same bytes again.
"""
from __future__ import annotations

import asyncio
import json
import multiprocessing
import os
import signal
import sys
import zlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from importlib.metadata import version
from multiprocessing.connection import Connection
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ragbed.agents.cassette import Cassette, SearchLine, TextLine, write_cassette
from ragbed.agents.database import Database
from ragbed.agents.journal import call_key
from ragbed.agents.replies import parse_object
from ragbed.documents.child_process import end_with_parent, limit_memory
from ragbed.documents.errors import UserError
from ragbed.experiments.benchmarks.hub import only_cached
from ragbed.experiments.question import Benchmark
from ragbed.experiments.running.plan import Plan
from ragbed.experiments.running.replay import Replay, check_named, count_misses, portable_settings
from ragbed.experiments.runs.finished import Finished
from ragbed.experiments.runs.run_manifest import questions_hash
from ragbed.experiments.settings import RunSettings
from ragbed.strategies.settings.plugins import parse_file_kind
from ragbed.strategies.types import Message

# What a submission may choose. Everything else must be as in the owner's settings.
OPEN = ("models", "reasoning", "retrieval", "history", "retriever", "chunkers", "embedders", "formats",
        "answer_formats", "framings", "headers", "prompt_variants", "languages", "layout", "calls", "concurrency")
_MAX_MEMORY = 6 * 1024**3  # bytes that a replay may use
_FACTORS = {"retrieval": "retrieval", "history": "history", "retriever": "retriever", "chunkers": "chunker",
            "embedders": "embedder", "formats": "format"}  # choices of these are factors, unless no cell uses them
_PLACES = ("path", "corpus", "novels", "topics")  # where a benchmark's files are, which differs between machines
_HEADER = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"  # of gzip, as `ragbed cassette export` writes it
_CODE = ("factory", "command", "plugin")  # settings keys that name code
_MAX_CELLS = 200


@dataclass(frozen=True)
class Reference:
    """One table: the owner's settings, with their benchmark and the hash of its questions."""

    settings: RunSettings
    benchmark: Benchmark
    hash: str

    @classmethod
    def of(cls, settings: RunSettings) -> Reference:
        """Load the benchmark of the owner's settings. Raises UserError if its files cannot be read."""
        loaded = settings.benchmark.load()
        return cls(settings, loaded, questions_hash(loaded))


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the check of a submission found.

    Attributes:
        file: name of the file.
        reason: why it is refused; empty if it is accepted.
        place: position of its table.
        name: name of its run.
        results: hash of its results.
        sha256: hash of the file.
        rows: rows of its cells, as in a summary.
    """

    file: str
    reason: str = ""
    place: int = 0
    name: str = ""
    results: str = ""
    sha256: str = ""
    rows: Sequence[Mapping[str, Any]] = ()
    columns: Sequence[str] = ()


class Refused(Exception):
    """A submission is refused, for this reason."""


def check_submission(path: Path, references: Sequence[Reference]) -> Verdict:
    """Replay a submission in this process and return its rows. Raises Refused, or UserError for a damaged file."""
    from ragbed.experiments.running.runner import RunCallbacks, run

    _check_frame(path)
    replay = Replay.open(path)
    about = replay.about
    place = next((place for place, one in enumerate(references) if one.hash == about.benchmark.hash), None)
    if place is None:
        raise Refused("its questions, documents or gold are not those of a benchmark of this leaderboard")
    settings = _settings(replay, references[place])
    _check_passages(replay.cassette, references[place].benchmark)
    with TemporaryDirectory() as out, only_cached():
        settings = settings.model_copy(update={"out": Path(out)})
        plan = Plan.of(settings)
        if unused := next((key for key, factor in _FACTORS.items() if getattr(settings, key) != getattr(
                references[place].settings, key) and all(getattr(cell, factor) is None for cell in plan.cells)), None):
            raise Refused(f"{unused}: no cell uses it, so it must be as in the leaderboard's settings")
        if len(plan.cells) > _MAX_CELLS:
            raise Refused(f"it has {len(plan.cells)} cells; at most {_MAX_CELLS} are allowed")
        if unknown := {*plan.models} - {*about.models}:
            raise Refused(f"it does not say which model {min(unknown)!r:.80} is")
        silent = RunCallbacks(lambda *stage: None, lambda begun: None, lambda record: None)
        folder = None
        try:
            folder = asyncio.run(run(settings, silent, "replay", again=True, replay=replay))
            replayed = Finished.of(folder)
            _compare(replayed, replay, Path(out))
            return Verdict(path.name, "", place, about.name, about.results, sha256(path.read_bytes()).hexdigest(),
                           replayed.rows, replayed.summary["columns"])
        except UserError as error:  # without the folder of the replay, which means nothing to readers
            raise Refused(str(error).replace(str(plan.folder), "its replay")) from error
        finally:
            if folder is not None:
                folder.close()


def _check_frame(path: Path) -> None:
    """Raise Refused unless the file is a single gzip member with the header that ragbed writes."""
    unpacker = zlib.decompressobj(31)
    try:
        with path.open("rb") as file:
            if file.read(len(_HEADER)) != _HEADER:
                raise Refused("it does not begin as a file of `ragbed cassette export` does")
            file.seek(0)
            while (piece := file.read(1 << 16)) and not unpacker.eof:
                while piece and not unpacker.eof:
                    unpacker.decompress(piece, 1 << 20)
                    piece = unpacker.unconsumed_tail
            if not unpacker.eof or unpacker.unused_data or piece:
                raise Refused("the file is truncated, or has bytes after its end")
    except OSError as error:
        raise Refused(f"it cannot be read: {error.strerror}") from error
    except zlib.error as error:
        raise Refused("the file is damaged: it cannot be unpacked") from error


def _settings(replay: Replay, reference: Reference) -> RunSettings:
    """Return the settings to replay: the submission's choices, and the owner's benchmark. Raises Refused if others
    differ, or if they name code."""
    about = replay.about
    if about.made_with or replay.cassette.ragbed != version("ragbed"):
        raise Refused(f"only cassettes that ragbed {version('ragbed')} exported, without remarks, can be checked")
    if code := next(_find_code(about.settings), None):
        raise Refused(f"its settings name code, which is never loaded: {code!r:.80}")
    settings = replay.recorded
    check_named(settings, replay, ())
    if settings.pipelines:
        raise Refused("its settings name a pipeline, which cannot be replayed from its calls")
    known, own = (one.model_dump(mode="json", by_alias=True) for one in (settings, reference.settings))
    if about.settings != portable_settings(known) or about.name != settings.name:
        raise Refused("its settings are not in the form that `ragbed cassette export` writes")
    for one in (known, own):
        one["benchmark"] = {name: value for name, value in one["benchmark"].items() if name not in _PLACES}
    fixed = {*known, *own} - {*OPEN, "name", "out", "budget"}
    if wrong := next((name for name in sorted(fixed) if known.get(name) != own.get(name)), None):
        raise Refused(f"{wrong}: the leaderboard has {_short(own.get(wrong))}, the submission "
                      f"{_short(known.get(wrong))}")
    return settings.model_copy(update={"benchmark": reference.settings.benchmark, "budget": reference.settings.budget})


def _check_passages(cassette: Cassette, benchmark: Benchmark) -> None:
    """Raise Refused if a search found a passage that is not in the benchmark's documents, such as one with the answer
    written into it. Passages of a corpus that is indexed, which is not loaded, are not checked."""
    if benchmark.corpus is not None:
        return
    whole = {chunk.id: chunk.content for chunk in (*benchmark.all_chunks, *benchmark.shared)}
    texts: dict[str, str] = {"": ""}
    for row in cassette.rows():
        if isinstance(row, TextLine):
            texts[row.text] = row.content
        for hit in row.found.hits if isinstance(row, SearchLine) else ():
            document, content, prefix = (benchmark.documents.get(hit.document), texts.get(hit.text),
                                         texts.get(hit.prefix))
            if content is None or prefix is None:
                raise Refused("it lacks a passage that a search found")
            text = "" if document is None else document.text(hit.format)
            if whole.get(hit.id) != content and (content != prefix + text[hit.start:hit.end] or prefix not in text):
                raise Refused("a search found a passage that is not in the benchmark's documents")


def _find_code(value: Any, key: str = "") -> Iterator[str]:
    """Yield the texts in settings that name code: a `FILE.py:FUNCTION`, or the value of a key for code."""
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _find_code(inner, str(name))
    elif isinstance(value, list):
        for inner in value:
            yield from _find_code(inner, key)
    elif isinstance(value, str) and (key in _CODE or parse_file_kind(value) is not None or value.endswith(".py")):
        yield value


def _compare(replayed: Finished, replay: Replay, out: Path) -> None:
    """Raise Refused unless the replayed run is the one that the cassette describes, and nothing is left over."""
    folder, about, made = replayed.folder, replay.about, replayed.made
    if missed := count_misses(folder):
        raise Refused(f"{missed} calls or searches of its run are missing")
    if replayed.summary["results"] != about.results:
        raise Refused("its replies do not give the results that it claims")
    mine = about.model_copy(update={
        "benchmark": about.benchmark.model_copy(update={
            name: made.benchmark[name] for name in ("name", "questions", "hash")}),
        "prompts": made.prompts, "judge_prompt": made.judge_prompt, "exemplars": made.exemplars,
        "models": made.models, "pins": folder.pins(), "cells": list(replayed.labels.values())})
    if wrong := next((name for name in type(mine).model_fields if getattr(mine, name) != getattr(about, name)), None):
        raise Refused(f"its description of the run is wrong: {wrong}")
    database = folder.database
    with database.transaction():
        for table in ("calls", "searches"):
            for (key,) in database.read(f"SELECT key FROM {table}"):  # noqa: S608
                if key not in database.used:
                    raise Refused(f"it has {table} that its run does not make")
    _check_calls(database, about.models.values())
    again = out / "again"
    write_cassette(again, replay.cassette.ragbed, about.model_dump(mode="json"), database)
    if Cassette.open(again).hash != replay.cassette.hash:
        raise Refused("its content is not what `ragbed cassette export` writes for these results")


def _check_calls(database: Database, identities: Collection[str]) -> None:
    """Raise Refused unless each call has the messages and parameters of its key, and its reply is read as it is."""
    for key, stored, parameters, reply in database.rows("SELECT key, messages, parameters, reply FROM calls"):
        sent = json.loads(parameters)
        messages = [Message(role, tuple(map(database.text, parts)), *(tuple(more[0]), more[1]) if more else ())
                    for role, parts, *more in json.loads(stored)]
        seed = sent.get("seed", 0)
        repeats = {divmod(seed if isinstance(seed, int) else 0, 1000), (0, 0)}
        if not any(call_key(one, messages, sent, *drawn) == key for one in identities for drawn in repeats):
            raise Refused(f"the messages or parameters of its call {key[:12]} were altered")
        found, schema = json.loads(reply or "{}"), sent.get("response_format", {}).get("json_schema", {}).get("schema")
        if found and found["parsed"] != (None if schema is None else parse_object(found["text"], schema)):
            raise Refused(f"the reply to its call {key[:12]} was altered")


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else text[:57] + "..."


def check_all(paths: Sequence[Path], references: Sequence[Reference], seconds: int) -> Iterator[Verdict]:
    """Check each submission in its own process, which is killed after `seconds` or beyond its memory limit. A
    submission with the results of an earlier one is refused."""
    import ragbed.experiments.running.runner  # noqa: F401 (once, before processes fork)

    seen: dict[str, str] = {}
    context: Any = multiprocessing.get_context("fork" if sys.platform == "linux" else "spawn")
    for path in paths:
        receiving, sending = context.Pipe(duplex=False)
        process = context.Process(target=_work, args=(path, references, seconds, sending, os.getpid()),
                                  daemon=True)
        process.start()
        sending.close()
        verdict = _receive(path, process, receiving, seconds)
        if not verdict.reason and verdict.results in seen:
            verdict = Verdict(path.name, f"it has the same results as {seen[verdict.results]}")
        elif not verdict.reason:
            seen[verdict.results] = path.name
        yield verdict


def _receive(path: Path, process: Any, receiving: Connection, seconds: int) -> Verdict:
    try:
        if not receiving.poll(seconds):
            return Verdict(path.name, f"its replay takes longer than {seconds} seconds")
        return Verdict(**json.loads(receiving.recv_bytes()))
    except (EOFError, OSError):
        return Verdict(path.name, "its replay ended without a result, for instance because it needs too much memory")
    finally:
        process.kill()
        process.join()
        receiving.close()


def _work(path: Path, references: Sequence[Reference], seconds: int, sending: Connection, parent: int) -> None:
    """Check a submission in a process of its own, and send the verdict as JSON."""
    end_with_parent(parent)
    limit_memory(_MAX_MEMORY)
    if hasattr(signal, "alarm"):
        signal.alarm(seconds + 10)
    for name in [name for name in os.environ if name.upper().endswith(("KEY", "TOKEN", "SECRET", "PASSWORD"))]:
        del os.environ[name]
    sys.stdout = sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    try:
        verdict = check_submission(path, references)
    except Refused as why:
        verdict = Verdict(path.name, str(why))
    except UserError as error:
        verdict = Verdict(path.name, " ".join(str(error).replace(f"{path}: ", "").replace(str(path), "it").split()))
    except RecursionError:
        verdict = Verdict(path.name, "it is nested too deeply")
    except MemoryError:
        verdict = Verdict(path.name, "its replay needs too much memory")
    sending.send_bytes(json.dumps({name: getattr(verdict, name) for name in Verdict.__dataclass_fields__}).encode())
    sending.close()


