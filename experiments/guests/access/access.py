"""Decide which documents the owner of a key may read, and give each owner the part of an index that has these only."""
from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakKeyDictionary

import numpy as np

from ragbed.agents.tools import tools_name
from ragbed.agents.types import Answer, ToolStep
from ragbed.documents.errors import did_you_mean
from ragbed.documents.types import FieldValue
from ragbed.experiments.formatting import plural
from ragbed.experiments.guests.access.access_rule import AccessRule, Fields
from ragbed.experiments.guests.access.allowed_index import AllowedIndex
from ragbed.experiments.guests.access.key_claims import Claims
from ragbed.retrieval.filters.parser import parse_conditions
from ragbed.retrieval.filters.terms import terms_of
from ragbed.retrieval.index import Index
from ragbed.strategies.types import Tools

if TYPE_CHECKING:
    from ragbed.agents.assistant import Assistant
    from ragbed.experiments.guests.serving.configurations import Configuration

_MAX_VIEWS = 32  # views of an index to keep open, each for the keys with the same claims
_CITING = ("search", "open", "calculate")  # tools whose text comes only from the documents that they cite
_TOOLS = (*_CITING, "list", "grep", "sql")
_EVERYTHING = "view:"  # in `basis`, before the content of a view
T = TypeVar("T")
_Class = tuple[tuple[str, frozenset[str]], ...]


class Access:
    """The rules of a server, all of which a document must meet, and the views of its indexes.

    Args:
        rules: texts of rules; without any, every key may read everything.
        claims: returns the claims of a key's owner.
        fields: fields that the server's own filters name.
    """

    def __init__(self, rules: Iterable[str], claims: Callable[[str], Claims],
                 fields: Collection[str] = frozenset()) -> None:
        self.rules = tuple(AccessRule.parse(text) for text in dict.fromkeys(rules))
        self._claims, self._fields = claims, frozenset(fields)
        self._lock = threading.RLock()
        self._known: WeakKeyDictionary[Index, Mapping[str, Fields]] = WeakKeyDictionary()
        self._narrowed: WeakKeyDictionary[Assistant, OrderedDict[Any, Configuration]] = WeakKeyDictionary()

    def claims(self, owner: str) -> Claims:
        """Return the claims of a key's owner."""
        return self._claims(owner)

    def view(self, index: Index, owner: str) -> Index:
        """Return an index with the documents that an owner may read; the index itself if these are all."""
        return self._view(index, self._read_claims(owner))

    def narrow(self, configuration: Configuration, owner: str) -> Configuration:
        """Return a configuration whose assistants can reach only the documents that an owner may read."""
        whole, claims = configuration.assistant, self._read_claims(owner)  # once, because keys may change meanwhile
        view = self._view(whole.index, claims)
        if view is whole.index:
            return configuration
        with self._lock:
            return _cached(self._narrowed, whole, claims, lambda: _over(configuration, view))

    def _read_claims(self, owner: str) -> _Class:
        """Return those claims of an owner that the rules name. Owners with the same ones share a view."""
        claims = self._claims(owner)
        named = {name for rule in self.rules for name in rule.claims}
        return tuple((name, claims[name]) for name in sorted(named) if name in claims)

    def _view(self, index: Index, claims: _Class) -> Index:
        if not self.rules:
            return index
        with self._lock:
            # kept at the index, because a view refers to it: both go when the index is replaced
            views = vars(index).setdefault("_views", WeakKeyDictionary())
            return _cached(views, self, claims, lambda: self._open_view(index, dict(claims)))

    def _open_view(self, index: Index, claims: Claims) -> Index:
        fields = self._fields_of(index)
        allowed = frozenset(document for document, known in fields.items() if self._allows(known, claims))
        return index if len(allowed) == len(fields) else AllowedIndex(index, allowed, self._fields)

    def _allows(self, fields: Fields, claims: Claims) -> bool:
        return all(rule.allows(fields, claims) for rule in self.rules)

    def _fields_of(self, index: Index) -> Mapping[str, Fields]:
        """Return the fields of each document that the operator gave. Those that a document states itself, such as in
        its front matter, are not believed."""
        if index not in self._known:
            given, sources = index._documents.given, index._documents.sources
            documents = dict.fromkeys(document for document, *_ in index.chunks.fields())
            self._known[index] = {one: {**given.get(one, {}), "source": sources[one]} for one in documents}
        return self._known[index]

    def check(self, assistants: Collection[Assistant], owners: Mapping[str, Claims]) -> tuple[list[str], list[str]]:
        """Compare the rules with the claims of the keys' owners, and with the documents and tools of assistants. Return
        why rules cannot take effect, and notes. Raises UserError if a rule cannot be enforced on an index."""
        if not self.rules:
            return [], []
        wrong, notes = [], []
        known = {name for one in owners.values() for name in one}
        for rule in self.rules:
            for name in sorted(rule.claims - known):
                wrong.append(f"allow: {rule.text}: no key has the claim {name!r}; {did_you_mean(name, known)}write it "
                             f"behind a key in the file of --keys, as in `ann KEY {name}=...`")
        if other := sorted({tools_name(Tools((one,))) for assistant in assistants if assistant.tools
                            for one in assistant.tools.tools if one not in _TOOLS}):
            notes.append(f"no rule limits what your own tools read: {', '.join(other)}")
        for index in dict.fromkeys(one.index for one in assistants):
            fields = self._fields_of(index)
            given: dict[str, FieldValue] = {name: None for one in fields.values() for name in one}
            wrong += [f"allow: {rule.text}: no document of {index.folder} has the field {name!r}; "
                      f"{did_you_mean(name, given)}add it with `ragbed index --metadata FILE`; what documents state "
                      "themselves does not count" for rule in self.rules for name in sorted(rule.fields - given.keys())]
            _probe(index)
            notes += self._hidden(fields, index, list(owners.values()) or [{}])
        return wrong, notes

    def _hidden(self, fields: Mapping[str, Fields], index: Index, claims: Sequence[Claims]) -> Iterator[str]:
        """Yield a note on the documents that no key may read."""
        hidden = [one for one, known in fields.items() if not any(self._allows(known, each) for each in claims)]
        broken = [(one, name) for one in hidden for rule in self.rules if (name := rule.malformed(fields[one]))]
        if hidden:
            why = f", such as {index.source_of(hidden[0])}"
            if broken:
                document, name = broken[0]
                why = f", {len(broken)} of them because {name} is malformed, as in {index.source_of(document)}"
            yield f"no key may read {len(hidden):,} of {plural(len(fields), 'document')}{why}"

    # What an answer is based on

    def basis(self, answer: Answer, index: Index, earlier: Iterable[str]) -> list[str]:
        """Return what an answer may contain: the ids of documents, and of those that `earlier` answers were based on.
        If a tool read all documents, the view itself."""
        read = {f"{_EVERYTHING}{index.content}" for step in answer.trace
                if isinstance(step, ToolStep) and step.tool not in _CITING}
        return sorted({*earlier, *read, *(passage.chunk.document for passage in answer.evidence)})

    def may_see(self, basis: Collection[str] | None, indexes: Iterable[Index], owner: str) -> bool:
        """Tell whether an owner may still read everything that an answer is based on; None means unknown, which is no.
        """
        if not self.rules:
            return True
        pairs = [(index, self.view(index, owner)) for index in dict.fromkeys(indexes)]
        return basis is not None and all(_may_see(one, pairs) for one in basis)


def _may_see(one: str, pairs: Sequence[tuple[Index, Index]]) -> bool:
    """Tell whether the views of all indexes that have a document have it, too."""
    if one.startswith(_EVERYTHING):
        return any(one == f"{_EVERYTHING}{view.content}" for _, view in pairs)
    held = [may_reach(view, one) for index, view in pairs if may_reach(index, one)]
    return bool(held) and all(held)


def may_reach(index: Index, document: str) -> bool:
    """Tell whether an index, or a view of one, has a document."""
    try:
        index.source_of(document)
    except KeyError:
        return False
    return True


def _over(configuration: Configuration, view: Index) -> Configuration:
    from ragbed.agents.assistant import Assistant

    whole = configuration.assistant
    assistant = Assistant(whole.settings, view, whole.client, None, whole.deps, whole.strategies, tools=whole.tools)
    return replace(configuration, assistant=assistant,
                   threads=assistant.with_checkpointer(configuration.threads.graph.checkpointer))


def _probe(index: Index) -> None:
    """Search one chunk only. Raises IndexFolderError if the kind of vectors finds another one."""
    dimension = index.manifest.embedder.dimension
    if len(index.chunks) > 1 and dimension:
        last = index.chunks[len(index.chunks) - 1].document
        AllowedIndex(index, frozenset((last,))).nearest(np.full((1, dimension), dimension ** -0.5, np.float32), 1)


def fields_of_filters(where: Iterable[str]) -> frozenset[str]:
    """Return the fields that filters name."""
    return frozenset(term.field for one in parse_conditions(tuple(where)) for term in terms_of(one))


def _cached(kept: Any, of: Any, key: Any, make: Callable[[], T]) -> T:
    """Return a value that is kept for an object, or make it. The last few are kept."""
    values = kept.setdefault(of, OrderedDict())
    if key not in values:
        values[key] = make()
        if len(values) > _MAX_VIEWS:
            values.popitem(last=False)
    values.move_to_end(key)
    return values[key]  # type: ignore[no-any-return]
