"""Checks before the first call: whether the settings fit the benchmark, whether the folder can hold the run, and notes
on likely mistakes."""
from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from filelock import FileLock

from ragbed.agents.settings import Context, min_tokens
from ragbed.documents.errors import BenchmarkError, RunError, SettingsError
from ragbed.documents.types import Chunk
from ragbed.experiments.benchmarks.fields import fill_references
from ragbed.experiments.cells import Cell
from ragbed.experiments.metrics import may_refuse
from ragbed.experiments.question import Benchmark
from ragbed.experiments.running.fingerprint import describe_changes, manifest_for
from ragbed.experiments.running.gold import missing_documents
from ragbed.experiments.runs.manifest import known_models, read_config
from ragbed.experiments.runs.store import RunFolder, lock_run, remove
from ragbed.experiments.settings import RunSettings
from ragbed.guests import entries
from ragbed.strategies.reading import fold
from ragbed.strategies.types import Exemplar

if TYPE_CHECKING:
    from ragbed.experiments.running.cassette import Replay
    from ragbed.experiments.running.plan import Plan
    from ragbed.experiments.running.resources import Resources

_INDEX = "name an index folder, as in retriever: {kind: dense, index: FOLDER}"
# In the order of removal, so that a killed process may leave settings without records, but never the reverse.
OWN_FILES = ("summary.json", "report.html", "times.jsonl", "records.sqlite-wal", "records.sqlite-shm",
             "records.sqlite", "manifest.json", "config.yaml")


def check_divisible(plan: Plan) -> None:
    """Check that the run can be divided into shards. Raises SettingsError if the answers to some questions decide which
    others are asked."""
    if plan.shard is not None and plan.settings.race:
        raise SettingsError("--shard: a race decides by all answers what to ask next, so it cannot be split into "
                            "shards; omit --shard or --race")


def check_conditions(settings: RunSettings, cells: Sequence[Cell], benchmark: Benchmark) -> None:
    """Check that the benchmark has everything that conditions and settings need: chunks, gold, whole documents, tables,
    something to search, sub-questions. Raises SettingsError if something is missing."""
    name = benchmark.name
    if "chain" not in benchmark.scheme.groups and (settings.filled == "gold" or settings.sub_answers == "in_prompt"):
        raise SettingsError(f"{'filled' if settings.filled == 'gold' else 'sub_answers'}: {name} scores no "
                            "sub-questions, so none are asked; leave it out")
    shown = {cell.condition for cell in cells if not cell.change.table}
    if "provided" in shown and not any(question.provided for question in benchmark.questions):
        raise SettingsError(f"conditions: {name} has no chunks for its questions; use retrieved"
                            f"{' or full' if benchmark.has_whole else ''}")
    if any(cell.change.table for cell in cells) and not any(question.table for question in benchmark.questions):
        raise SettingsError(f"perturbations: {name} has no tables to show instead of the documents; leave table out")
    blind = [cell.rules for cell in cells if cell.retrieval == "none" and cell.rules in ("grounded", "reading")]
    if blind:
        raise SettingsError(f"retrieval: none provides no documents under retrieved, and the rules {blind[0]} do not "
                            "allow answers without them; use conditions: closed-book, or rules: open")
    nothing = benchmark.corpus is None and not benchmark.gives_chunks
    if nothing and any(cell.retriever is not None and cell.format is None for cell in cells):
        raise SettingsError(f"retriever: {name} has no corpus to index; {_INDEX}")
    _check_negatives(cells, benchmark)
    _check_labelled(shown, cells, benchmark)


def _check_negatives(cells: Sequence[Cell], benchmark: Benchmark) -> None:
    """Check that negatives of the requested sort exist, and that `pool` is used only with chunks of the questions."""
    sorts = sorted({sort for question in benchmark.questions for one in question.mined.values() for sort in one.sorts})
    for cell in cells:
        if cell.change.sort and cell.change.sort not in sorts:
            there = f"there are: {', '.join(sorts)}" if sorts else \
                f"{benchmark.name} has no mined negatives; see `ragbed negatives`"
            raise SettingsError(f"perturbations: {cell.perturbation}: no negative is of type {cell.change.sort}; "
                                f"{there}")
        if cell.change.pool and cell.format is not None:
            raise SettingsError(f"perturbations: {cell.perturbation}: pool cannot change what an index contains; use "
                                "negatives@N, or omit the retriever's index")


def _check_labelled(shown: Collection[str], cells: Sequence[Cell], benchmark: Benchmark) -> None:
    """Check that at least one question has gold if a condition depends on gold."""
    if any(cell.condition == "full" and cell.retriever is not None and cell.format is None for cell in cells):
        raise SettingsError(f"conditions: {benchmark.name} has no whole documents to show under full; leave full out, "
                            f"or {_INDEX}")
    if any(question.gold or not question.answerable for question in benchmark.questions):
        return
    if "gold" in shown:
        raise SettingsError(f"conditions: no question of {benchmark.name} has gold evidence; remove gold")
    if "full" in shown and not benchmark.has_whole:
        raise SettingsError(f"conditions: no question of {benchmark.name} names the document to show under full; "
                            "leave full out")


def check_ids(benchmark: Benchmark) -> None:
    """Raise BenchmarkError if two questions have the same id."""
    seen: set[str] = set()
    for question in benchmark.questions:
        if question.id in seen:
            raise BenchmarkError(f"{benchmark.name}: two questions have the id {question.id!r}; ids must be unique")
        seen.add(question.id)


def check_exemplars(exemplars: tuple[Exemplar, ...], benchmark: Benchmark, where: str = "exemplars") -> None:
    """Raise SettingsError if a worked example gives a question's answer away.

    An example does so if its question is a question or sub-question of the benchmark, ignoring case and punctuation. It
    also does so if it contains the words of one and shows a document of that question. `where` names the setting in the
    message.
    """
    examples = [_folded(exemplar.question) for exemplar in exemplars]
    for question in benchmark.questions if exemplars else ():
        filled = {fill_references(text, question.sub_answers) for text in question.sub_questions}
        asked = {_folded(text) for text in (question.text, *question.sub_questions, *filled)}
        for place, (exemplar, words) in enumerate(zip(exemplars, examples, strict=True), start=1):
            if words in asked or (any(_holds(words, text) for text in asked)
                                  and _shares_documents(exemplar, [*question.chunks, *benchmark.shared])):
                raise SettingsError(f"{where}: example {place} asks the question {question.id} of {benchmark.name}, "
                                    "or a part of it, and would give its answer away; take another example")


def _shares_documents(exemplar: Exemplar, chunks: Iterable[Chunk]) -> bool:
    """Return whether a document of the example contains one of the chunks, or vice versa."""
    contents = [_folded(chunk.content) for chunk in chunks]
    return any(_holds(content, shown) or _holds(shown, content)
               for shown in map(_folded, exemplar.documents) for content in contents)


def _holds(text: str, words: str) -> bool:
    return bool(words.strip()) and f" {words} " in f" {text} "


def _folded(text: str) -> str:
    return fold(text) or text.strip()


@dataclass(slots=True)
class RunSession:
    """One process that works on a run's folder, from start to end.

    It holds the folder's lock. An earlier run's files stay untouched until `begin`.

    Attributes:
        manifest: the run's manifest, as it will be written.
        folder: the open folder; None until `begin` if the run starts from scratch, since an earlier run may be damaged.
        continues: whether the folder has calls or records of this run.
        replay: the cassette that calls are taken from; None if the run makes them.
    """

    plan: Plan
    manifest: dict[str, Any]
    lock: FileLock
    folder: RunFolder | None = None
    continues: bool = False
    replay: Replay | None = None

    def done(self) -> set[tuple[str, str]]:
        """Return the (cell, question) pairs whose records are kept."""
        return self.folder.done() if self.folder and self.continues else set()

    def check_whole(self) -> None:
        """Raise RunError if the run was stopped early, since a replay would record a miss for each unanswered
        question."""
        finished = (self.plan.folder / "summary.json").is_file()
        if self.continues and not (finished if self.plan.schedule else len(self.done()) >= self.plan.expected):
            raise RunError(f"{self.plan.folder}: the run has not finished, so its journal lacks calls; rerun the "
                           "command without --journal replay to continue it")

    def kept(self) -> Mapping[str, str] | None:
        """Return the recorded content hashes by `content_name`; None if there are none to replay."""
        if self.replay is not None:
            return self.replay.pins(self.plan)
        return self.folder.pins() if self.folder else None

    def begin(self, searched: Mapping[str, str]) -> RunFolder:
        """Remove files that do not belong to the run, and write its settings and manifest.

        `searched` has the hash of everything that is searched, by `content_name`. Raises RunError if earlier records
        came from an index with other content, or if the folder cannot be written.
        """
        if self.folder is None:
            for name in OWN_FILES:  # the run's index and other programs' files are kept
                remove(self.plan.folder / name)
            self.folder = RunFolder(self.plan.folder, self.lock)
        if self.replay is not None and self.folder.is_empty():
            with self.folder.database.transaction():  # import the whole cassette or nothing
                self.replay.cassette.read_into(self.folder.database)
                self.folder.set_origin(self.replay.cassette.hash)
        for name, content in searched.items():
            self.folder.pin(name, content)
        if not self.continues:
            self.folder.clear_records()
        self.folder.begin(self.plan.settings.to_yaml(), self.manifest, self.plan.asked)
        return self.folder

    def close(self) -> None:
        """Release the folder."""
        if self.folder is None:
            self.lock.release()
        else:
            self.folder.close()


def prepare_run(plan: Plan, fresh: bool = False, replay: Replay | None = None) -> RunSession:
    """Prepare a new run, or continue one with equal settings and questions. With `fresh`, `begin` removes the files of
    an earlier run. With `replay`, calls come from a cassette.

    Raises:
        RunError: the folder holds another run or one of another origin, or another process works on it.
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
            session.continues = can_continue(session.folder, plan.settings.to_yaml(), manifest)
            if session.continues and replay is not None and session.folder.origin() != replay.cassette.hash:
                raise RunError(f"{folder} holds a run that is not a replay of {replay.path}; use another name, as in "
                               "--name replayed, or start again with --fresh")  # replies would be of two origins
        opened.pop_all()
    return session


def can_continue(folder: RunFolder, config: str, manifest: Mapping[str, Any]) -> bool:
    """Return whether the folder has calls or records of the run with these settings. Raises RunError if they belong to
    another run. Settings may change as long as nothing was asked."""
    known = read_config(folder.path)
    if known is None or folder.is_empty():
        return False
    if changes := describe_changes(folder.path, known, config, manifest):
        raise RunError(f"{folder.path} holds a run with {changes}; use another name, or start again with --fresh")
    return True


def preflight_notes(plan: Plan, resources: Resources) -> Iterator[str]:
    """Yield one-line notes on likely mistakes and on questions that cannot be answered."""
    benchmark, cells, settings = plan.benchmark, plan.cells, plan.settings
    if benchmark.scheme.right is None and not settings.only_searches and "steps" not in benchmark.scheme.groups:
        yield (f"{benchmark.name} scores only what is found; the model is asked, but its answers have no score; "
               "reasoning: search_only asks no model")
    known = resources.indexed_documents()
    gold = [item for one in benchmark.questions if one.answerable for item in resources.indexed_gold(one)]
    if known and (missing := missing_documents(gold, known)):
        more = f" and {len(missing) - 5} more" if len(missing) > 5 else ""
        yield (f"these gold documents are not in the index, so they are never found: {', '.join(missing[:5])}{more}; "
               "are they mistyped?")
    asked, conditions = len(benchmark.questions), {cell.condition for cell in cells}
    nameless = sum(bool(question.whole) and not question.about for question in benchmark.questions)
    if nameless and "closed-book" in conditions:
        yield (f"closed-book: {nameless} of {asked} questions have no title or author of their document, so their "
               "prompts do not name it")
    without = sum(not question.gold for question in benchmark.questions)
    if without and "gold" in conditions:
        yield f"gold: {without} of {asked} questions have no gold, so they are asked with no documents"
    # A question without its gold can only be refused. If the rules offer no refusal, it has no right reply.
    rules = sorted({cell.rules for cell in cells if cell.change.drop_gold and not may_refuse(cell.rules)})
    if rules and "choice" not in benchmark.scheme.groups:
        yield (f"drop_gold: the prompts of the rules {' and '.join(rules)} offer no refusal, so questions without "
               "their gold have no score; use rules: grounded")
    yield from _too_long(settings, cells, resources)


def _too_long(settings: RunSettings, cells: Sequence[Cell], resources: Resources) -> Iterator[str]:
    """Yield how many questions cannot fit a model's context, for every model and way of placing chunks."""
    sizes: dict[str, int] = {}
    seen: set[tuple[str | None, ...]] = set()
    reply = settings.limits.max_tokens
    for cell in cells:
        context = resources.clients[cell.model].context
        key = (cell.model, cell.condition, cell.finder, cell.format, cell.perturbation)
        if context is None or cell.searched or key in seen:
            continue
        seen.add(key)
        shown = [resources.placed_if_known(cell, question) for question in resources.benchmark.questions]
        over = [size for chunks in shown if (size := _excess(chunks, context, reply, sizes)) is not None]
        if over:
            what = cell.condition if cell.perturbation is None else f"{cell.condition} with {cell.perturbation}"
            room = f"less {reply} for the reply" if context.whole_reply else "with the reply"
            yield (f"{what}: {len(over)} of {len(shown)} questions cannot fit the context of {cell.model}, "
                   f"{context.tokens} tokens {room}: the documents of the largest have at least {max(over)}. Each will "
                   "be too_long, and nothing is cut; conditions: retrieved shows only what is found")


def _excess(chunks: Sequence[Chunk], context: Context, reply: int, sizes: dict[str, int]) -> int | None:
    """Return the least number of tokens if the chunks cannot fit; None if they may fit. Each chunk is measured once."""
    if context.holds(sum(len(chunk.content) + 1 for chunk in chunks), reply):
        return None
    for chunk in chunks:
        if chunk.id not in sizes:
            sizes[chunk.id] = min_tokens(chunk.content)
    size = sum(sizes[chunk.id] for chunk in chunks)
    return size if size > context.room(reply) else None
