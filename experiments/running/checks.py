"""Check before a run whether every setting can act, and whether the benchmark has everything that the cells need."""
from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ragbed.agents.tools import search_tool
from ragbed.documents.errors import BenchmarkError, SettingsError
from ragbed.documents.types import Chunk
from ragbed.experiments.benchmarks.fields import fill_references
from ragbed.experiments.cells import OWN, PIPELINE, Cell
from ragbed.experiments.metrics import may_refuse
from ragbed.experiments.question import Benchmark
from ragbed.experiments.running.cell_matrix import OF_CHUNKS, list_finders, list_strategies
from ragbed.experiments.settings.matrix import list_retrievers
from ragbed.experiments.settings.retrievers import RetrieverFactor
from ragbed.strategies.catalogue import SEARCH_ONLY
from ragbed.strategies.reading import fold
from ragbed.strategies.settings.prompt_texts import DEFAULT_PROMPTS
from ragbed.strategies.types import Exemplar

if TYPE_CHECKING:
    from ragbed.experiments.settings import RunSettings

_DOCUMENTS = ("name the documents, as in `ragbed run FILE FOLDER`, benchmark: {corpus: FOLDER} or retriever: {index: "
              "FOLDER}")
_UNSEARCHED = "no cell searches; remove it, or set conditions: retrieved"
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
    _check_unused(settings, cells)
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


def _check_unused(settings: RunSettings, cells: Sequence[Cell]) -> None:
    """Check that each setting that was given acts in a cell. A benchmark's own settings may remain without effect."""
    usual = {key: [value] if key.endswith("s") and not isinstance(value, list) else value
             for key, value in settings.benchmark.about.settings.items()}
    if all(cell.retriever is None for cell in cells):
        for one in settings.retriever:
            given = one.model_dump(mode="json", exclude_defaults=True, exclude={"name"})
            if {"kind": one.kind, **given} not in ({"kind": "dense"}, usual.get("retriever")):
                key = next((f": {key}" for key in OF_CHUNKS if key in given), "")
                raise SettingsError(f"retriever {one.name}{key} has no effect, because no cell searches or reads an "
                                    "index; remove it, or set conditions: retrieved")
    answering = [cell for cell in cells if cell.reasoning != SEARCH_ONLY]
    shown = [cell for cell in answering if cell.condition != "closed-book"]
    acting: Mapping[str, tuple[Iterable[Any], str]] = {
        "retrieval": ((cell.retrieval for cell in cells if cell.reasoning != PIPELINE), _UNSEARCHED),
        "grader": ((cell.ranked for cell in cells), _UNSEARCHED),
        "rules": (shown, "no cell answers from documents"), "probe": (shown, "no cell answers from documents"),
        "perturbations": ((cell.perturbation for cell in cells), "no cell shows documents that it changes"),
        "framings": ((cell.framing for cell in cells), "no prompt shows documents"),
        "headers": ((cell.headers for cell in cells), "no prompt shows documents"),
        "languages": ((cell.language for cell in cells), "no prompt offers a refusal"),
        "refusals": ((may_refuse(cell.rules) for cell in answering), "no prompt offers a refusal"),
        "prompt_variants": ((cell.prompt_variant for cell in cells), "no strategy has several"),
        **dict.fromkeys(("answer_formats", "layout", "brief", "exemplars"), (
            [cell.answer_format for cell in cells if cell.answer_format], "no strategy asks for an answer")),
        **dict.fromkeys(("judges", "support", "filled", "sub_answers"), (answering, "no cell answers"))}
    given = settings.model_dump(mode="json", include={*acting})
    for key, (used, why) in acting.items():
        default = type(settings).model_fields[key].get_default(call_default_factory=True)
        if key == "framings" and settings.layout == "as_published":
            default = ["none"]
        if given.get(key, default) not in (default, usual.get(key, default)) and not any(used):
            raise SettingsError(f"{key} has no effect, because {why}" + ("" if ";" in why else "; remove it"))


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
        own = {key: value for key, value in retriever if key not in ("kind", "name", *OF_CHUNKS)}
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
