"""Resources that the cells of a run share: models, indexes, pools of chunks, and the evidence of each question."""
from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ragbed.agents.search import FoundHits, Searcher, SearchFunction, fixed_chunks
from ragbed.agents.tools import QuestionTools, StoredTools, make_by_guest, search_tool, searches_of, tools_name
from ragbed.documents.errors import ReplayMiss
from ragbed.documents.headers import passage_header
from ragbed.documents.types import Chunk, Document, Format, digest
from ragbed.experiments.cells import PIPELINE
from ragbed.experiments.conditions import Perturbation
from ragbed.experiments.running.fingerprint import IndexKey, SearchCache, content_name, gold_request
from ragbed.experiments.running.gold import Changed, Perturber, Places, gold_by_source, gold_by_span
from ragbed.retrieval.index import Index
from ragbed.retrieval.pool import Pool, ScopedQuery
from ragbed.retrieval.types import RerankerDeps

if TYPE_CHECKING:
    from ragbed.agents.client import ModelClient
    from ragbed.agents.types import Answer
    from ragbed.experiments.cells import Cell
    from ragbed.experiments.question import Gold, Question
    from ragbed.experiments.record import Level
    from ragbed.experiments.running.plan import Plan
    from ragbed.strategies.types import Search


class PoolChange(NamedTuple):
    """Negatives that a question searches together with its gold, instead of its own chunks. `seed` draws them."""

    change: Perturbation
    seed: int


def scope_name(question: Question, everything: bool, change: PoolChange | None = None) -> str:
    """Return the name of the set of chunks that a question searches."""
    if change is not None:
        return f"{change.change}:{change.seed}:{question.id}"
    if everything:
        return "all"
    return f"own:{question.id}" if question.own else "shared"


@dataclass(frozen=True, slots=True)
class Pooled:
    """A retriever over chunks of questions.

    Attributes:
        pool: None in a replay, which returns recorded results.
        everything: whether each question searches the chunks of all questions. If not, it searches its own or, without
            any, the shared ones.
        pins: hashes of the content and of the embedder, keyed by `content_name`.
        content: returns a hash of what the searches of a scope depend on, besides the retriever.
        embeds: whether the retriever needs the pool's vectors.
    """

    pool: Pool | None
    searcher: Searcher[ScopedQuery]
    everything: bool
    pins: Mapping[str, str]
    content: Callable[[str], str]
    embeds: bool = True


@dataclass(frozen=True, slots=True)
class ShownSearch:
    """A question's search function, with notes for its record and the score of each chunk that was found, by its id.
    Both are complete after the last search."""

    search: SearchFunction
    notes: list[str] = field(default_factory=list)
    scores: dict[str, float] = field(default_factory=dict)
    tools: QuestionTools | None = None


class Resources:
    """Models, indexes, pools and placed evidence of a run, shared by all cells.

    Attributes:
        opened: indexes by their folder.
        indexes, searchers: by finder's name and format.
        pools: by finder's name.
        how: a string that identifies each retriever's method, keyed by the retriever's name.
        tools: the strategies' tools, by `tools_name`.
        indexing: seconds of building the vectors of each index that this process built, by its folder.
    """

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.benchmark = benchmark = plan.benchmark
        self.clients: dict[str, ModelClient] = {}
        self.opened: dict[Path, Index] = {}
        self.indexes: dict[IndexKey, Index] = {}
        self.searchers: dict[IndexKey, Searcher[str]] = {}
        self.pools: dict[str, Pooled] = {}
        self.how: dict[str, str] = {}
        self.tools: dict[str, StoredTools] = {}
        self.indexing: dict[Path, float] = {}
        self.deps = RerankerDeps()
        headed = self.header_of if any(cell.headers for cell in plan.cells) else None
        self.cache = SearchCache(self.indexes, self.source_of, headed)
        self._places: dict[IndexKey, Places] = {}
        self._documents: dict[tuple[IndexKey, str], Chunk] = {}
        self._corpora: dict[IndexKey, Any] = {}
        self._seed = plan.settings.seeds[0]
        self.perturber = Perturber(benchmark, self.source_of)
        self._placed: dict[tuple[str | int | None, ...], Changed] = {}

    def index(self, folder: Path) -> Index:
        """Return the index in a folder. It is opened only once. Raises the same errors as `Index.open`."""
        if folder not in self.opened:
            self.opened[folder] = Index.open(folder)
        return self.opened[folder]

    def source_of(self, document: str) -> str:
        """Return the source path of a document id; the id itself if no source is known."""
        if (known := self.benchmark.documents.get(document)) is not None:
            return known.source
        for index in self.opened.values():
            with contextlib.suppress(KeyError):
                return index.source_of(document)
        return self.cache.searches.sources.get(document, document)

    def header_of(self, chunk: Chunk) -> str:
        """Return the header with which prompts show a chunk: made from its document, or recorded with a search. It is
        empty if neither is known."""
        headers = self.cache.searches.headers
        if chunk.id not in headers:
            document = self.benchmark.documents.get(chunk.document)
            for index in self.opened.values() if document is None else ():
                with contextlib.suppress(KeyError):
                    document = index.document(chunk.document)
            headers[chunk.id] = passage_header(document, chunk) if document else ""
        return headers[chunk.id]

    def indexed_documents(self) -> set[str]:
        """Return the ids and the source paths of the documents in the indexes."""
        return {name for index in self.opened.values() for source, entry in index.manifest.sources.items()
                for name in (source, entry.document)}

    def indexed_gold(self, question: Question) -> tuple[Gold, ...]:
        """Return the gold in a form that matches an index."""
        return gold_by_source(question.gold, self.benchmark.documents)

    def gold(self, cell: Cell, question: Question) -> tuple[Gold, ...]:
        """Return the gold in the form that matches the cell's evidence."""
        if cell.format is not None:
            return self.indexed_gold(question)
        cut = cell.searched and self.plan.finders[str(cell.finder)].cut
        return gold_by_span(question.gold, self._own_chunks) if cut else question.gold

    @cached_property
    def _own_chunks(self) -> Mapping[str, Chunk]:
        return {chunk.id: chunk for chunk in self.benchmark.all_chunks}

    def match_contexts(self, cell: Cell, question: Question,
                       answer: Answer) -> tuple[Answer, Mapping[int, Level | None]]:
        """Return a pipeline's answer with its contexts matched to the documents, and the gold levels that follow from
        the match. Answers of strategies need no matching."""
        if cell.reasoning != PIPELINE:
            return answer, {}
        gold = self._gold_among((None, None), self.benchmark.shared, question.gold) if self.benchmark.shared else ()
        evidence, levels = self.plan.pipelines[cell.model].match_contexts(
            answer.evidence, question, self._named, gold)
        return replace(answer, evidence=evidence), levels

    @cached_property
    def _named(self) -> Mapping[str, Document]:
        documents = self.benchmark.documents
        return {**{one.source: one for one in documents.values() if one.source}, **documents}

    def answerable(self, cell: Cell, question: Question) -> bool:
        """Return whether the question is answerable in the cell. It is not if its gold was dropped."""
        return question.answerable and not (cell.change.drop_gold and question.gold)

    def contents(self) -> dict[str, str]:
        """Return a hash of each searched content, keyed by `content_name`."""
        named = {content_name("index", *key): self.cache.content(key) for key in self.searchers}
        for pooled in self.pools.values():
            named |= pooled.pins
        named |= {content_name("how", name): how for name, how in self.how.items()}
        named |= {content_name("tools", name): tools.content for name, tools in self.tools.items()}
        return {name: content for name, content in named.items() if content}

    def servers(self) -> dict[str, str]:
        """Return a hash of what serves each open model, by the model's identity."""
        return {client.identity: digest(client.served_by or "") for client in self.clients.values()}

    def placed(self, cell: Cell, question: Question) -> Changed:
        """Return the perturbed chunks that the cell shows without a search. The result is empty under `retrieved`."""
        key = (cell.condition, cell.finder, cell.format, cell.perturbation, cell.seed, question.id)
        if key not in self._placed:
            first = self._chunks(cell, question)
            changed = self._changed(cell, question, first.chunks)
            self._placed[key] = replace(changed, notes=(*first.notes, *changed.notes))
        return self._placed[key]

    def _chunks(self, cell: Cell, question: Question) -> Changed:
        key, condition = (cell.finder, cell.format), cell.condition
        if condition == "provided":
            return Changed(question.provided)
        if condition == "full" and cell.retriever is None:
            return Changed(question.whole)
        if condition == "gold" and question.own:
            return Changed(Places(question.own, self.source_of).gold(question.gold))
        if condition == "gold" and cell.retriever is None:
            return Changed(self._gold_among(key, self.benchmark.shared, question.gold))
        if condition not in ("gold", "full"):
            return Changed(())
        gold = self.indexed_gold(question)
        narrowed = condition == "gold" and self.plan.settings.scoring != "as-published" and any(
            item.chunk is None and item.start is None for item in gold)

        def find(index: Index) -> FoundHits:
            if condition == "full":
                return FoundHits.from_chunks(self._whole_documents(key, index, gold), condition)
            best = self._places_of(key, index.chunks).best_gold(gold, question) if narrowed else Changed(
                self._gold_among(key, index.chunks, gold))
            return FoundHits.from_chunks(best.chunks, condition, best.notes)

        request: dict[str, Any] = {"condition": condition, "gold": gold_request(gold)}
        if narrowed:
            quotes = (text for item in gold for text in item.quotes)
            request["words"] = digest(question.text, *question.answers, *quotes)
        found = self.cache.take(key, request, find)
        return Changed(found.chunks, found.notes)

    def _gold_among(self, key: IndexKey, chunks: Sequence[Chunk], gold: Sequence[Gold]) -> tuple[Chunk, ...]:
        return self._places_of(key, chunks).gold(gold)

    def _places_of(self, key: IndexKey, chunks: Sequence[Chunk]) -> Places:
        if key not in self._places:
            self._places[key] = Places(chunks, self.source_of)
        return self._places[key]

    def _whole_documents(self, key: IndexKey, index: Index, gold: Sequence[Gold]) -> tuple[Chunk, ...]:
        ids = {source: entry.document for source, entry in index.manifest.sources.items()}
        known = ids | {id: id for id in ids.values()}
        wanted = dict.fromkeys(known[item.document] for item in gold if item.document in known)
        format: Format = "html" if key[1] == "html" else "plain"
        for id in wanted:
            if (key, id) not in self._documents:
                document = index.document(id)
                self._documents[key, id] = Chunk.of(document, format, 0, len(document.text(format)))
        return tuple(self._documents[key, id] for id in wanted)

    def placed_if_known(self, cell: Cell, question: Question) -> Sequence[Chunk]:
        """Return the placed chunks. If a replay lacks them, return none; the record will report that."""
        try:
            return self.placed(cell, question).chunks
        except ReplayMiss:
            return ()

    def shown(self, cell: Cell, question: Question) -> ShownSearch:
        """Return how a question in a cell is searched, and its tools."""
        shown = self._searched(cell, question)
        stored = self.tools.get(tools_name(self.plan.tasks(cell).tools))
        if stored is None:
            return shown
        corpus, content = self._corpus(cell, question)
        searches = {"search": shown.search, **dict.fromkeys(searches_of(stored.tools), shown.search)}
        for tool in sorted(searches_of(stored.tools)) if cell.searched else ():
            other = self._like(cell, tool)
            searches[tool] = self._searched(other, question).search
            content = digest(content, tool, self._corpus(other, question)[1])
        if cell.change.moves:  # what a search finds then depends on the question
            content = digest(content, str(cell.change), str(cell.seed), question.id)
        return replace(shown, tools=stored.over(corpus, content, searches))

    def over_passages(self, cell: Cell, chunks: Sequence[Chunk]) -> ShownSearch:
        """Return the same for a question that is asked over fixed chunks."""
        search, stored = fixed_chunks(chunks), self.tools.get(tools_name(self.plan.tasks(cell).tools))
        if stored is None:
            return ShownSearch(search)
        corpus = self._documents_of(chunks)
        searches = dict.fromkeys(["search", *searches_of(stored.tools)], search)
        return ShownSearch(search, tools=stored.over(corpus, corpus.hash, searches))

    def _corpus(self, cell: Cell, question: Question) -> tuple[Any, str]:
        """Return the documents that a question's tools may read, and a hash of them and of how they are searched."""
        key, change = (cell.finder, cell.format), self.pool_change(cell)
        if not cell.searched:
            placed = self._documents_of(self.placed_if_known(cell, question))
            return placed, placed.hash
        retriever, how = self.plan.finders[str(cell.finder)].retriever, self.how[str(cell.finder)]
        if key in self.searchers:
            if key not in self._corpora and key in self.indexes:
                self._corpora[key] = make_by_guest("index", self.indexes[key], cell.format, retriever.where)
            corpus = self._corpora.get(key) or self._documents_of(())
            return corpus, digest(self.cache.content(key), how, str(retriever.k))
        pooled = self.pools[str(cell.finder)]
        scope = scope_name(question, pooled.everything, change)
        chunks = pooled.pool.scope(scope).chunks if pooled.pool is not None else ()
        return self._documents_of(chunks), digest(pooled.content(scope), how, str(retriever.k))

    def _like(self, cell: Cell, tool: str) -> Cell:
        """Return the cell with the retriever that a tool searches, in the most similar of its combinations."""
        others = [one for one in self.plan.cells if one.searched and search_tool(str(one.retriever)) == tool]
        other = max(others, key=lambda one: (one.format == cell.format, one.chunker == cell.chunker,
                                             one.embedder == cell.embedder), default=cell)
        return replace(cell, **{name: getattr(other, name) for name in ("retriever", "chunker", "embedder", "format")})

    def _documents_of(self, chunks: Sequence[Chunk]) -> Any:
        def describe(document: str) -> tuple[str, str]:
            source, known = self.source_of(document), self.benchmark.documents.get(document)
            return source, known.title if known else source

        return make_by_guest("chunks", chunks, describe)

    def _searched(self, cell: Cell, question: Question) -> ShownSearch:
        if not cell.searched:
            try:
                placed = self.placed(cell, question)
            except ReplayMiss as error:
                missed = error  # the first search raises this error and ends the question

                async def search(action: Search) -> Sequence[Chunk]:
                    raise missed

                return ShownSearch(search)
            return ShownSearch(fixed_chunks(placed.chunks), list(placed.notes))
        searcher, notes, scores = self.searchers.get((cell.finder, cell.format)), list[str](), dict[str, float]()
        if searcher is not None:
            found = searcher.search_scored(lambda query: query, scores)
        else:
            change, pooled = self.pool_change(cell), self.pools[str(cell.finder)]
            scope = scope_name(question, pooled.everything, change)
            found = pooled.searcher.search_scored(lambda query: ScopedQuery(scope, query), scores)
            if change:
                notes += self.perturber.searched(change.change, question, self.own(question), change.seed).notes
        return ShownSearch(self._search_perturbed(cell, question, found, notes) if cell.change.moves else found, notes,
                           scores)

    def own(self, question: Question) -> Sequence[Chunk]:
        """Return the question's own chunks to search; empty if it searches the chunks of all questions."""
        return question.own or self.benchmark.shared

    def pool_change(self, cell: Cell) -> PoolChange | None:
        """Return the negatives that the cell searches; None if it searches the chunks of the questions."""
        change = Perturbation(pool=cell.change.pool, sort=cell.change.sort, drop_gold=cell.change.drop_gold)
        return PoolChange(change, self._seed if cell.seed is None else cell.seed) if change.pool else None

    def _search_perturbed(self, cell: Cell, question: Question, found: SearchFunction,
                          notes: list[str]) -> SearchFunction:

        async def search(action: Search) -> Sequence[Chunk]:
            changed = self._changed(cell, question, await found(action))
            notes.extend(note for note in changed.notes if note not in notes)
            return changed.chunks

        return search

    def _changed(self, cell: Cell, question: Question, chunks: Sequence[Chunk]) -> Changed:
        seed = self._seed if cell.seed is None else cell.seed

        def perturb(more: Sequence[Chunk]) -> Changed:
            return self.perturber.changed(cell.change, question, chunks, self.gold(cell, question), seed, more)

        if cell.format is None or not cell.change.negatives:
            return perturb(())
        request = {"perturbation": str(cell.change), "seed": seed, "question": question.id,
                   "questions": self._questions, "shown": [chunk.id for chunk in chunks]}

        def find(index: Index) -> FoundHits:
            made = perturb(index.chunks)
            return FoundHits.from_chunks(made.chunks, "perturbation", made.notes)

        taken = self.cache.take((cell.finder, cell.format), request, find)
        return Changed(taken.chunks, taken.notes)

    @cached_property
    def _questions(self) -> str:
        """Return a hash of the questions and other material, except the index, from which negatives are drawn."""
        return digest(self.plan.questions_hash, *(chunk.id for chunk in self.benchmark.shared))
