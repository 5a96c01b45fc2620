"""Turn the combinations of factor levels in a run's settings into distinct cells. Combinations that differ only in
factors without effect become one cell, which is run once.

Checks whether the benchmark has everything that the cells need.
"""
from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ragbed.agents.model_settings import NO_MODEL
from ragbed.agents.tools import search_tool
from ragbed.documents.errors import BenchmarkError, SettingsError
from ragbed.documents.types import Chunk
from ragbed.experiments.benchmarks.fields import fill_references
from ragbed.experiments.cells import OWN, PIPELINE, Cell, Show, finder_name
from ragbed.experiments.conditions import Condition, Perturbation
from ragbed.experiments.metrics import may_refuse
from ragbed.experiments.query_variations import QueryVariation
from ragbed.experiments.question import Benchmark
from ragbed.experiments.settings.matrix import list_retrievers
from ragbed.experiments.settings.retrievers import Finder, RetrieverFactor, label
from ragbed.strategies.catalogue import CRESTS, SEARCH_ONLY
from ragbed.strategies.reading import fold
from ragbed.strategies.settings.prompt_texts import DEFAULT_PROMPTS
from ragbed.strategies.settings.strategy_config import Strategy
from ragbed.strategies.types import FAMILIES, Exemplar, Family

if TYPE_CHECKING:
    from ragbed.experiments.settings import RunSettings
    from ragbed.experiments.settings.matrix import Combination

Strategies = Mapping[Family, Mapping[str, Strategy]]  # by label


def expand_matrix(settings: RunSettings, benchmark: Benchmark, combinations: Sequence[Combination],
                  retrievers: Mapping[str, RetrieverFactor], strategies: Strategies) -> tuple[Cell, ...]:
    """Return the distinct cells of the combinations, in order. `retrievers` has all retrievers in the settings."""
    make = _CellMaker(settings, benchmark, combinations, retrievers, strategies)
    return tuple(dict.fromkeys(map(make.cell, combinations)))


_OF_CHUNKS = ("index", "build", "over", "where")  # settings of a retriever that also choose what can be read


class _CellMaker:
    def __init__(self, settings: RunSettings, benchmark: Benchmark, combinations: Sequence[Combination],
                 retrievers: Mapping[str, RetrieverFactor], strategies: Strategies) -> None:
        self._settings, self._benchmark, self._strategies = settings, benchmark, strategies
        self._retrievers = {name: retrievers[name] for name in dict.fromkeys(one.retriever for one in combinations)}
        self._shows = next((one.condition for one in combinations if one.condition != "closed-book"), None)
        self._searching = next((one.retrieval for one in combinations if one.retrieval not in ("none", OWN)), "none")
        self._seeded = len({one.seed for one in combinations}) > 1
        self._subs = any(question.sub_questions for question in benchmark.questions)
        self._variations = {name for name in {one.variation for one in combinations} if name == "paraphrase" or any(
            QueryVariation.parse(name).apply(question.text) != question.text for question in benchmark.questions)}
        self._worded = any(one.prompt_variant > 1 for one in combinations)
        self._languages = any(one.language != "english" for one in combinations)
        self._headers = any(one.headers for one in combinations)
        self._prompts = any(one.prompts != DEFAULT_PROMPTS for one in combinations)
        self._turns = any(question.turns for question in benchmark.questions)
        # If one reply must answer all sub-questions, the prompt shows all of them.
        self._answers_subs = self._subs and settings.sub_answers == "in_prompt" and "chain" in benchmark.scheme.groups

    def cell(self, one: Combination) -> Cell:
        strategy = self._strategies["reasoning"].get(one.reasoning)
        if strategy is not None and not strategy.gathers:  # equal cells are merged
            one = replace(one, retrieval=self._searching,
                          retriever=one.retriever if strategy.searches else self._like(one.retriever))
        condition = one.condition
        change = effective_change(Perturbation.parse(one.perturbation), condition, one.retrieval, self._benchmark)
        if change.table and self._shows is not None:
            condition = self._shows
        found = None if change.table else self._finder(one)
        searched = condition == "retrieved" and not change.table
        retriever = self._retrievers[one.retriever]
        own = found is not None and retriever.index is None  # the run chunks and embeds by itself
        show: Show = "sub_questions" if self._answers_subs else one.show if self._subs else "question"
        is_pipeline = one.reasoning == PIPELINE
        asked = one.reasoning != SEARCH_ONLY and not is_pipeline
        return Cell(
            model=one.model, retrieval=one.retrieval if searched else None, retriever=found, reasoning=one.reasoning,
            rules="closed-book" if condition == "closed-book" else one.rules, condition=condition,
            perturbation=None if change == Perturbation() else str(change), show=show,
            format=one.format if found and has_index(retriever, self._benchmark) else None,
            benchmark=self._settings.benchmark.kind, repeat=one.repeat,
            seed=one.seed if self._seeded and self._uses_seed(change, one, searched) else None,
            chunker=one.chunker if own else None, embedder=one.embedder if own and retriever.embeds else None,
            history=one.history if self._turns and not is_pipeline else None,
            variation=one.variation if one.variation in self._variations else None,
            framing=one.framing if asked and condition != "closed-book" else None,
            headers=one.headers if self._headers and asked and condition != "closed-book" else None,
            answer_format=one.answer_format if asked else None,
            language=one.language if self._languages and asked and condition != "closed-book" and may_refuse(
                one.rules) else None,
            prompts=one.prompts if self._prompts and not is_pipeline and one.model != NO_MODEL else None,
            prompt_variant=one.prompt_variant if self._worded and asked and any(
                part.kind in CRESTS for part in self._strategies["reasoning"][one.reasoning].parts) else None)

    def _uses_seed(self, change: Perturbation, one: Combination, searched: bool) -> bool:
        """Return whether the seed can have an effect. ragbed's own strategies are not random, but plug-ins may be."""
        used = [] if one.reasoning == PIPELINE else [self._strategies["reasoning"][one.reasoning]]
        used += [self._strategies["retrieval"][one.retrieval]] if searched and one.retrieval != OWN else []
        used += [self._strategies["history"][one.history]] if self._turns else []
        return (change.shuffle or change.negatives > 0 or change.pool > 0 or one.variation.startswith("typos")
                or any(strategy.has_plugins for strategy in used))

    def _finder(self, one: Combination) -> str | None:
        """Return the retriever, chunker and embedder of the evidence; None if questions contain it or there is none."""
        if one.condition == "retrieved":
            return one.retriever if one.retrieval not in ("none", OWN) else None
        if {"gold": self._benchmark.gives_chunks, "full": self._benchmark.has_whole}.get(one.condition, True):
            return None
        return self._like(one.retriever)

    def _like(self, retriever: str) -> str:
        """Return the first retriever over the same chunks."""
        wanted = self._retrievers[retriever]
        return next(name for name, other in self._retrievers.items() if all(
            getattr(other, field) == getattr(wanted, field) for field in _OF_CHUNKS))


def effective_change(change: Perturbation, condition: Condition, retrieval: str, benchmark: Benchmark) -> Perturbation:
    """Return the perturbation without its parts that have no effect, so that equal cells are merged."""
    if condition == "closed-book":
        return Perturbation()
    if condition == "retrieved" and retrieval == "none":
        return Perturbation(unnumbered=change.unnumbered)  # unnumbered also means no citations
    if not any(question.gold for question in benchmark.questions):
        change = replace(change, drop_gold=False, gold_at=0)
    if condition != "retrieved" or benchmark.corpus is not None:
        change = replace(change, pool=0, sort=change.sort if change.negatives else "")
    if condition == "gold" and not change.negatives:
        change = replace(change, gold_at=0)  # only gold is shown
    most = _max_chunks(change, condition, benchmark)
    return change if most is None or most > 1 else replace(change, shuffle=False, gold_at=0)


def _max_chunks(change: Perturbation, condition: Condition, benchmark: Benchmark) -> int | None:
    if change.table:
        return 1 + change.negatives
    if condition == "gold":
        return change.negatives if change.drop_gold else None
    if condition == "provided":
        return max(len(question.provided) for question in benchmark.questions) + change.negatives
    if condition == "full" and benchmark.has_whole:
        return max(len(question.whole) for question in benchmark.questions) + change.negatives
    return None


def has_index(retriever: RetrieverFactor, benchmark: Benchmark) -> bool:
    """Return whether the retriever searches an index rather than the questions' chunks."""
    return retriever.index is not None or benchmark.corpus is not None


def matrix_notes(combinations: Sequence[Combination], cells: Sequence[Cell], strategies: Strategies) -> list[str]:
    """Return notes on combinations that were merged into one cell, and on the effect of seeds."""
    notes = [] if len(combinations) == len(cells) else [
        f"{len(combinations)} combinations of the settings make {len(cells)} cells: combinations that differ only in "
        "factors without effect share a cell."]
    if len({one.seed for one in combinations}) > 1 and all(cell.seed is None for cell in cells):
        notes.append("The seeds have no effect: no perturbation or strategy is random. To ask questions several times, "
                     "use repeats.")
    unknown = dict.fromkeys(name for cell in cells if cell.seed is not None for family in FAMILIES
                            if (name := getattr(cell, family)) and strategies[family][name].has_plugins)
    return notes + ([f"Each seed is a separate cell under {' and '.join(unknown)}: ragbed cannot tell whether a custom "
                     "strategy uses it."] if unknown else [])


def list_finders(settings: RunSettings, retrievers: Sequence[RetrieverFactor]) -> dict[str, Finder]:
    """Return every finder that the settings describe (a retriever with a chunker and an embedder), by name."""
    found: dict[str, Finder] = {}
    for retriever in retrievers:
        for chunker in (None, *settings.chunkers):
            for embedder in (None, *settings.embedders):
                parts = (label(one) if one else None for one in (chunker, embedder))
                name = finder_name(retriever.name, *parts) or ""
                made: dict[str, Any] = {"chunker": chunker} if chunker else {}
                made |= {"embedder": embedder} if embedder else {}
                build = retriever.build.model_copy(update=made)
                found[name] = Finder(retriever.model_copy(update={"name": name, "build": build}))
    return found


def list_strategies(settings: RunSettings, load: Callable[[Strategy], Strategy] = lambda one: one) -> Strategies:
    """Return every strategy in the settings, by family and label. They are not loaded by default."""
    parts = (settings, *settings.include)
    return {family: {one.label: load(one) for part in parts for one in getattr(part, family) or ()}
            for family in FAMILIES}


_DOCUMENTS = ("name the documents, as in `ragbed run FILE FOLDER`, benchmark: {corpus: FOLDER} or retriever: {index: "
              "FOLDER}")
_INDEX = "name an index folder, as in retriever: {kind: dense, index: FOLDER}"



def check_conditions(settings: RunSettings, cells: Sequence[Cell], benchmark: Benchmark) -> None:
    """Check that the benchmark has everything that conditions and settings need: chunks, gold, whole documents, tables,
    something to search, sub-questions. Raises SettingsError if something is missing."""
    name = benchmark.name
    if "chain" not in benchmark.scheme.groups and (settings.filled == "gold" or settings.sub_answers == "in_prompt"):
        raise SettingsError(f"{'filled' if settings.filled == 'gold' else 'sub_answers'}: {name} does not score "
                            "sub-questions, so ragbed does not ask them; omit the setting")
    shown = {cell.condition for cell in cells if not cell.change.table}
    if "provided" in shown and not any(question.provided for question in benchmark.questions):
        raise SettingsError(f"conditions: {name} has no chunks for its questions; use retrieved"
                            f"{' or full' if benchmark.has_whole else ''}"
                            f"{'' if benchmark.corpus or benchmark.gives_chunks else f' and {_DOCUMENTS}'}")
    if any(cell.change.table for cell in cells) and not any(question.table for question in benchmark.questions):
        raise SettingsError(f"perturbations: {name} has no tables to show instead of the documents; remove table")
    blind = [cell.rules for cell in cells if cell.retrieval == "none" and cell.rules in ("grounded", "reading")]
    if blind:
        raise SettingsError(f"retrieval: none does not search, and the rules {blind[0]} do not "
                            "allow answers without documents; use conditions: closed-book, or rules: open")
    nothing = benchmark.corpus is None and not benchmark.gives_chunks
    if nothing and any(cell.retriever is not None and cell.format is None for cell in cells):
        raise SettingsError(f"retriever: {name} has no corpus to index; {_DOCUMENTS}")
    _check_negatives(cells, benchmark)
    _check_labelled(shown, cells, benchmark)
    check_searches(settings, cells, benchmark)



def check_searches(settings: RunSettings, cells: Sequence[Cell], benchmark: Benchmark) -> None:
    """Check that every setting of a search can act. Raises SettingsError for the first that cannot."""
    if all(cell.retriever is None for cell in cells):
        unused = next((one for one in settings.retriever if one.index or one.build.given or one.where), None)
        if unused is not None:
            key = "index" if unused.index else "build" if unused.build.given else "where"
            raise SettingsError(f"retriever {unused.name}: {key} has no effect, because no cell searches or reads an "
                                "index; remove it, or set conditions: retrieved")
    _check_agents(settings, cells)
    given: Mapping[str, tuple[Any, Iterable[Any], str]] = {
        "chunkers": (settings.chunkers, (cell.chunker for cell in cells), "no retriever cuts documents"),
        "embedders": (settings.embedders, (cell.embedder for cell in cells), "no retriever embeds chunks"),
        # Of several formats without effect, the cells are merged, which a note says.
        "show": (settings.show == ["sub_questions"], (cell.show != "question" for cell in cells),
                 f"no question of {benchmark.name} has sub-questions to show"),
        "questions": (len(settings.questions) == 1 and settings.questions != ["as_asked"],
                      (cell.variation for cell in cells), "it changes no question"),
        "prompts": (settings.prompts != [DEFAULT_PROMPTS], (cell.prompts for cell in cells),
                    "no strategy asks a model"),
        "formats": (settings.formats == ["html"], (cell.format for cell in cells), "no retriever builds an index")}
    for key, (values, used, why) in given.items():
        if values and not any(used):
            raise SettingsError(f"{key} has no effect, because {why}; remove it")
    finders = list_finders(settings, list_retrievers(settings))
    searched = {cell.finder: cell for cell in cells if cell.finder is not None}
    embedding = [(one.index, one.build) for name in searched if (one := finders[name].retriever).embeds]
    for name, cell in searched.items():
        finder, pooled = finders[name], cell.format is None
        _check_build(finder.retriever, pooled, embedding, f"retriever {name}")
        if pooled and finder.cut:
            _check_cut(benchmark, name)


def _check_agents(settings: RunSettings, cells: Sequence[Cell]) -> None:
    """Check that no retrieval strategy and no setting of a retriever is meant for agents that do not use it."""
    strategies = list_strategies(settings)
    reasoning = {cell: strategies["reasoning"].get(cell.reasoning) for cell in cells if cell.searched}
    blind = [one for one in reasoning.values() if one is not None and not one.gathers]
    if not blind:
        return
    used = {cell.retrieval for cell, one in reasoning.items() if one is None or one.gathers}
    idle = next((name for name in strategies["retrieval"] if name not in (*used, "once", "none", OWN)), None)
    if idle is not None:
        raise SettingsError(f"retrieval: {idle} has no effect, because {blind[0].label} searches only with its tools; "
                            "remove it, or add a reasoning strategy that uses it")
    searched = {cell.retriever for cell, one in reasoning.items() if one is None or one.searches}
    tools = {tool for one in blind for tool in one.tools if isinstance(tool, str)}
    usual = settings.benchmark.about.settings.get("retriever", {})
    for retriever in list_retrievers(settings):
        if retriever.name in searched or search_tool(retriever.name) in tools:
            continue
        own = {key: value for key, value in retriever if key not in ("kind", "name", *_OF_CHUNKS)}
        key = next((key for key, value in own.items() if value != type(retriever).model_fields[key].default and
                    usual.get(key) != value), None)
        if key and any(cell.retriever == retriever.name for cell in cells):
            raise SettingsError(f"retriever {retriever.name}: {key} has no effect, because no tool of "
                                f"{blind[0].label} searches; remove it, or add the tool `search`")


def _check_build(retriever: RetrieverFactor, pooled: bool, embedding: Collection[tuple[Any, Any]], where: str) -> None:
    given = retriever.build.given
    if not pooled and retriever.over == "own":
        raise SettingsError(f"{where}: over: own has no effect, because the benchmark's corpus is searched as a whole; "
                            "remove over")
    if pooled and (kind := given.get("vectors")) is not None and not kind.in_folder:
        raise SettingsError(f"{where}: build.vectors: {kind.kind} needs an index, but the chunks of the questions are "
                            "searched; remove it, or name an index folder with index: FOLDER")
    if retriever.embeds or (not pooled and (retriever.index, retriever.build) in embedding):
        return  # retrievers with the same settings share an index
    unused = [key for key in ("vectors", "embedder") if key in given and getattr(given[key], "kind", "") != "none"]
    if unused:
        raise SettingsError(f"{where}: build.{unused[0]} has no effect, because {retriever.kind} compares no vectors; "
                            "remove it")


def _check_cut(benchmark: Benchmark, where: str) -> None:
    """Check that the questions' documents can be cut again, and that gold can follow into the new chunks."""
    chunks = {chunk.id: chunk for chunk in benchmark.all_chunks}
    unknown = next((chunk for chunk in chunks.values() if chunk.document not in benchmark.documents), None)
    if unknown is not None:
        raise SettingsError(f"retriever {where}: {benchmark.name} has no document for the chunk {unknown.id}, so it "
                            "cannot be cut again; remove the chunker")
    for question in benchmark.questions:
        lost = next((item for item in question.gold if item.chunk is not None and item.start is None
                     and not item.document and item.chunk not in chunks), None)
        if lost is not None:
            raise SettingsError(f"retriever {where}: the gold of question {question.id} is the chunk {lost.chunk}, "
                                f"whose place in its document {benchmark.name} does not say, so it cannot follow into "
                                "other chunks; remove the chunker")


def _check_negatives(cells: Sequence[Cell], benchmark: Benchmark) -> None:
    """Check that negatives of the requested type exist, and that `pool` is used only with chunks of the questions."""
    sorts = sorted({sort for question in benchmark.questions for one in question.mined.values() for sort in one.sorts})
    for cell in cells:
        if cell.change.sort and cell.change.sort not in sorts:
            there = f"there are: {', '.join(sorts)}" if sorts else \
                f"{benchmark.name} has no mined negatives; see `ragbed negatives`"
            raise SettingsError(f"perturbations: {cell.perturbation}: no negative is of type {cell.change.sort}; "
                                f"{there}")
        if cell.change.pool and cell.format is not None:
            raise SettingsError(f"perturbations: {cell.perturbation}: pool cannot change the content of an index; use "
                                "negatives@N, or omit the retriever's index")



def _check_labelled(shown: Collection[str], cells: Sequence[Cell], benchmark: Benchmark) -> None:
    if any(cell.condition == "full" and cell.retriever is not None and cell.format is None for cell in cells):
        raise SettingsError(f"conditions: {benchmark.name} has no whole documents to show; remove full, "
                            f"or {_INDEX}")
    if any(question.gold or not question.answerable for question in benchmark.questions):
        return
    if "gold" in shown:
        raise SettingsError(f"conditions: no question of {benchmark.name} has gold evidence; remove gold")
    if "full" in shown and not benchmark.has_whole:
        raise SettingsError(f"conditions: no question of {benchmark.name} names a document to show; remove full")



def check_ids(benchmark: Benchmark) -> None:
    """Raise BenchmarkError if two questions have the same id."""
    seen: set[str] = set()
    for question in benchmark.questions:
        if question.id in seen:
            raise BenchmarkError(f"{benchmark.name}: two questions have the id {question.id!r}; ids must be unique")
        seen.add(question.id)



def check_exemplars(exemplars: tuple[Exemplar, ...], benchmark: Benchmark, where: str = "exemplars") -> None:
    """Raise SettingsError if a worked example gives a question's answer away.

    This is the case if its question is a question or sub-question of the benchmark, ignoring case and punctuation. It
    is also the case if it contains the words of one and shows a document of that question. `where` names the setting in
    the message.
    """
    examples = [_fold_words(exemplar.question) for exemplar in exemplars]
    for question in benchmark.questions if exemplars else ():
        filled = {fill_references(text, question.sub_answers) for text in question.sub_questions}
        asked = {_fold_words(text) for text in (question.text, *question.sub_questions, *filled)}
        for place, (exemplar, words) in enumerate(zip(exemplars, examples, strict=True), start=1):
            if words in asked or (any(_holds(words, text) for text in asked)
                                  and _shares_documents(exemplar, [*question.chunks, *benchmark.shared])):
                raise SettingsError(f"{where}: example {place} asks the question {question.id} of {benchmark.name}, "
                                    "or a part of it, and would reveal its answer; use another example")



def _shares_documents(exemplar: Exemplar, chunks: Iterable[Chunk]) -> bool:
    contents = [_fold_words(chunk.content) for chunk in chunks]
    return any(_holds(content, shown) or _holds(shown, content)
               for shown in map(_fold_words, exemplar.documents) for content in contents)



def _holds(text: str, words: str) -> bool:
    return bool(words.strip()) and f" {words} " in f" {text} "



def _fold_words(text: str) -> str:
    return fold(text) or text.strip()
