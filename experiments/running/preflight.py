"""Checks before the first call: whether the folder can hold the run, and notes on likely mistakes."""
from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from filelock import FileLock

from ragbed.agents.model_settings import Context, min_tokens
from ragbed.documents.errors import ReplayMiss, RunError, SettingsError
from ragbed.documents.types import Chunk
from ragbed.experiments.analysis.notes import note_whole_gold
from ragbed.experiments.cells import Cell
from ragbed.experiments.metrics import may_refuse
from ragbed.experiments.running.fingerprint import list_changes, manifest_for
from ragbed.experiments.running.gold import missing_documents
from ragbed.experiments.runs.run_manifest import DAMAGED, known_models, read_config, read_servers
from ragbed.experiments.runs.store import RunFolder, lock_run, remove
from ragbed.experiments.settings import RunSettings
from ragbed.guests import entries

if TYPE_CHECKING:
    from ragbed.experiments.running.plan import Plan
    from ragbed.experiments.running.replay import Replay
    from ragbed.experiments.running.resources import Resources

# Files are removed in this order: a killed process may leave settings without records, but never records alone.
OWN_FILES = ("summary.json", "report.html", "times.jsonl", "trial.json", "records.sqlite-wal", "records.sqlite-shm",
             "records.sqlite", "manifest.json", "config.yaml")


def check_divisible(plan: Plan) -> None:
    """Check that the run can be divided into shards. Raises SettingsError if answers decide the next questions."""
    if plan.shard is not None and plan.settings.race:
        raise SettingsError("--shard: early stopping needs the answers of the whole run, so it cannot be split into "
                            "shards; omit --shard or --race")


@dataclass(slots=True)
class RunSession:
    """The work of one process on a run's folder, from start to end.

    It holds the folder's lock. An earlier run's files stay untouched until `begin`.

    Attributes:
        manifest: the run's manifest, as it will be written.
        folder: the open folder. If the run starts from scratch, it is None until `begin`, since an earlier run may be
            damaged.
        continues: whether the folder has calls or records of this run.
        changes: what changed since the run in the folder, one phrase each.
        replay: the cassette from which calls are replayed; None if the run makes calls.
    """

    plan: Plan
    manifest: dict[str, Any]
    lock: FileLock
    folder: RunFolder | None = None
    continues: bool = False
    replay: Replay | None = None
    changes: Sequence[str] = ()

    def done(self) -> set[tuple[str, str]]:
        """Return the (cell, question) pairs that already have a record."""
        return self.folder.done() if self.folder and self.continues else set()

    def check_whole(self) -> None:
        """Raise RunError if the run was stopped early or has other settings, since its replay would fail for each
        unanswered question."""
        if self.changes:
            raise RunError(f"{self.plan.folder} holds a run with different settings: {self.changes[0]}; use another "
                           "name, or omit --journal replay to ask what changed")
        finished = (self.plan.folder / "summary.json").is_file()
        if self.continues and not (finished if self.plan.schedule else len(self.done()) >= self.plan.expected):
            raise RunError(f"{self.plan.folder}: the run has not finished, so its journal lacks calls; rerun the "
                           "command without --journal replay to continue it")

    def kept(self) -> Mapping[str, str] | None:
        """Return the recorded hashes of the searched content, keyed by `content_name`; None for a new run."""
        if self.replay is not None:
            return self.replay.pins(self.plan)
        return self.folder.pins() if self.folder else None

    def begin(self, searched: Mapping[str, str], servers: Mapping[str, str]) -> RunFolder:
        """Remove files that do not belong to the run, and write its settings and manifest.

        Args:
            searched: a hash of each searched content, keyed by `content_name`.
            servers: a hash of what serves each open model, by identity.

        Raises:
            SearchesChanged: records of the same settings came from an index with other content.
            RunError: the folder cannot be written.
        """
        known = read_servers(self.plan.folder)
        self.manifest["servers"] = {**known, **servers} if self.continues else dict(servers)
        if self.folder is None:
            for name in OWN_FILES:  # keep the run's index and files of other programs
                remove(self.plan.folder / name)
            self.folder = RunFolder(self.plan.folder, self.lock)
        pins = self.folder.pins()
        moved = [name for name, content in searched.items() if self.continues and pins.get(name, content) != content]
        if moved:
            raise SearchesChanged(moved)
        if self.changes:
            # The journal's keys leave out the server, so a server that changed voids every call.
            self.folder.set_aside(all(known.get(name, content) == content for name, content in servers.items()))
        if self.replay is not None and self.folder.is_empty():
            with self.folder.database.transaction():  # import the whole cassette or nothing
                self.replay.cassette.read_into(self.folder.database)
                self.folder.set_origin(self.replay.cassette.hash)
        if not self.continues:
            self.folder.clear_records()
        for name, content in searched.items():
            self.folder.pin(name, content)
        self.folder.begin(self.plan.settings.to_yaml(), self.manifest, self.plan.asked)
        return self.folder

    def close(self) -> None:
        """Release the folder."""
        if self.folder is None:
            self.lock.release()
        else:
            self.folder.close()


class SearchesChanged(Exception):
    """The content that a run searches has changed since its records were made: `names`, as of `content_name`."""

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__(", ".join(names))
        self.names = names


def prepare_run(plan: Plan, fresh: bool = False, replay: Replay | None = None,
                searches: Sequence[str] = ()) -> RunSession:
    """Prepare a run: a new one, one to continue, or one whose settings, questions or `searches` changed. With `fresh`,
    `begin` removes the files of an earlier run. With `replay`, calls are replayed from a cassette.

    Raises:
        RunError: the folder holds a damaged run, or records that were not replayed from this cassette, or another
            process works on it.
        BenchmarkError: two questions have the same id, or the cassette has other questions.
        ModelError: a model is unknown.
        SettingsError: two names mean the same model.
    """
    folder = plan.folder
    if any((folder.parent / name).is_file() for name in entries("opener")):
        raise RunError(f"{folder} holds answers of `ragbed serve`; choose another output folder, as in --set out=runs")
    known = {} if fresh else known_models(folder)
    if replay is not None:
        known |= replay.about.models
    manifest = manifest_for(plan, known)
    if replay is not None:
        replay.check(plan)
    with contextlib.ExitStack() as opened:
        lock = lock_run(folder)
        opened.callback(lock.release)
        session = RunSession(plan, manifest, lock, replay=replay)
        if not fresh:
            session.folder = RunFolder(folder, lock)
            opened.callback(session.folder.close)
            begun = read_config(folder) if not session.folder.is_empty() else None
            if begun is not None:
                session.changes = [*list_changes(plan, session.folder, begun, plan.settings.to_yaml(), manifest),
                                   *(f"{name} has changed" for name in searches)]
                session.continues = not session.changes
            if begun is not None and (damage := session.folder.find_damage()):
                raise RunError(f"{folder}: {damage}; use another name, or start again with --fresh")
            if DAMAGED in session.changes:
                raise RunError(f"{folder}: {DAMAGED}; use another name, or start again with --fresh")
            if begun is not None and replay is not None and session.folder.origin() != replay.cassette.hash:
                raise RunError(f"{folder} holds a run that is not a replay of {replay.path}; use another name, as in "
                               "--name replayed, or start again with --fresh")  # replies would come from two sources
        opened.pop_all()
    return session


def preflight_notes(plan: Plan, resources: Resources) -> Iterator[str]:
    """Yield one-line notes on likely mistakes and on questions that cannot get a right answer."""
    benchmark, cells, settings, scheme = plan.benchmark, plan.cells, plan.settings, plan.benchmark.scheme
    if not scheme.correctness_metrics and not settings.only_searches and "steps" not in scheme.groups:
        yield (f"{benchmark.name} scores only searches, so the model's answers have no score; "
               "reasoning: search_only makes no model calls")
    yield from benchmark.notes
    known = resources.indexed_documents()
    gold = [item for one in benchmark.questions if one.answerable for item in resources.indexed_gold(one)]
    if known and (missing := missing_documents(gold, known)):
        more = f" and {len(missing) - 5} more" if len(missing) > 5 else ""
        yield (f"these gold documents are not in the index, so searches never find them: "
               f"{', '.join(missing[:5])}{more}; " "check their names")
    asked, conditions = len(benchmark.questions), {cell.condition for cell in cells}
    nameless = sum(bool(question.whole) and not question.about for question in benchmark.questions)
    if nameless and "closed-book" in conditions:
        yield (f"closed-book: {nameless} of {asked} questions lack title and author of their document, so their "
               "prompts do not name it")
    without = sum(not question.gold for question in benchmark.questions)
    if without and "gold" in conditions:
        yield f"gold: {without} of {asked} questions have no gold, so their prompts show no documents"
    placed = {cell.finder: cell for cell in cells if cell.condition == "gold" and cell.format is not None}
    with contextlib.suppress(ReplayMiss):
        yield from note_whole_gold((one.id, resources.placed(cell, one).notes) for cell in placed.values()
                                   for one in benchmark.questions)
    # Without its gold, a question can only be refused. If the rules offer no refusal, no reply is right.
    rules = sorted({cell.rules for cell in cells if cell.change.drop_gold and not may_refuse(cell.rules)})
    if rules and "choice" not in benchmark.scheme.groups:
        yield (f"drop_gold: the prompts of the rules {' and '.join(rules)} offer no refusal, so questions without "
               "their gold have no score; use rules: grounded")
    yield from _too_long(settings, cells, resources)


def _too_long(settings: RunSettings, cells: Sequence[Cell], resources: Resources) -> Iterator[str]:
    """Yield how many questions exceed a model's context, for every model and every way to place chunks."""
    sizes: dict[str, int] = {}
    seen: set[tuple[str | None, ...]] = set()
    for cell in cells:
        context = resources.clients[cell.model].context
        reply = settings.calls.config(cell.model).max_tokens or settings.limits.max_tokens
        key = (cell.model, cell.condition, cell.finder, cell.format, cell.perturbation)
        if context is None or cell.searched or key in seen:
            continue
        seen.add(key)
        shown = [resources.placed_if_known(cell, question) for question in resources.benchmark.questions]
        over = [size for chunks in shown if (size := _excess(chunks, context, reply, sizes)) is not None]
        if over:
            what = cell.condition if cell.perturbation is None else f"{cell.condition} with {cell.perturbation}"
            room = f"less {reply} for the reply" if context.whole_reply else "with the reply"
            yield (f"{what}: {len(over)} of {len(shown)} questions exceed the context of {cell.model}, "
                   f"{context.tokens} tokens {room}: the documents of the largest have at least {max(over)}. Each will "
                   "get the outcome too_long, as ragbed never cuts documents; use conditions: retrieved")


def _excess(chunks: Sequence[Chunk], context: Context, reply: int, sizes: dict[str, int]) -> int | None:
    """Return the least number of tokens of the chunks if that exceeds the context, otherwise None."""
    if context.holds(sum(len(chunk.content) + 1 for chunk in chunks), reply):
        return None
    for chunk in chunks:
        if chunk.id not in sizes:
            sizes[chunk.id] = min_tokens(chunk.content)
    size = sum(sizes[chunk.id] for chunk in chunks)
    return size if size > context.room(reply) else None
