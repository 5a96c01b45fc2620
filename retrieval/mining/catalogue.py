"""The miners by name."""
from __future__ import annotations

from collections.abc import Iterable, Mapping

from pydantic import TypeAdapter

from documents.errors import SettingsError
from retrieval.mining.miners import DRAWN, Drawn, Nearness, Neighbours, Rows, SameDocument
from retrieval.mining.same_name import SameName
from retrieval.mining.types import Miner
from retrieval.retrievers import KINDS, Kind, RetrieverSettings
from retrieval.types import Aids, Collection

ALONE: Mapping[str, str] = {
    "same_document": "other chunks of the documents of the gold, nearest first",
    "entity": "chunks that share a name with the question or its gold, and state another number or year",
    DRAWN: "chunks drawn by chance"}
"""Miners that are no retriever, and what each finds."""


def miner_names() -> dict[str, str]:
    """Every miner's name and what it finds: each kind of retriever, with its usual settings, and `ALONE`."""
    kinds = {str(kind.model_fields["kind"].default): f"what a search by {kind.model_fields['kind'].default} finds"
             for kind in KINDS if not any(field.is_required() for name, field in kind.model_fields.items())}
    return {**kinds, **ALONE}


def check_miners(names: Iterable[str]) -> None:
    """Raises:
        SettingsError: there is no miner of one of the names.
    """
    known = miner_names()
    if unknown := [name for name in names if name not in known]:
        raise SettingsError(f"there is no miner {unknown[0]!r}; there are: {', '.join(known)}")


def open_miner(name: str, rows: Rows, seed: int) -> tuple[Miner, str]:
    """The miner of that name over a collection, and what tells it apart from one that finds otherwise.

    Raises:
        SettingsError: there is none of that name.
        UserError: a model or package that it needs is not to be had.
    """
    check_miners([name])
    if name == "same_document":
        return SameDocument(rows, Nearness(rows.collection)), name
    if name == "entity":
        return SameName(rows), name
    if name == DRAWN:
        return Drawn(rows, seed), f"{name} {seed}"
    kind: Kind = TypeAdapter(RetrieverSettings).validate_python(name)
    return _neighbours(name, kind, rows.collection), kind.identity()


def _neighbours(name: str, kind: Kind, collection: Collection) -> Neighbours:
    return Neighbours(name, kind.open(collection, Aids()))
