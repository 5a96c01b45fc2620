"""Retrievers made of retrievers: how deep, how they are told apart, and that they find the same again."""

import pytest
from embedders import Words
from pydantic import TypeAdapter, ValidationError

from ragbed.documents import Chunk, Document
from ragbed.retrieval import Pool, RerankerDeps, RetrieverSettings
from ragbed.retrieval.filters.filtered_collection import filter_collection
from ragbed.retrieval.filters.parser import normalise_filter
from ragbed.retrieval.storage.cache import CachedEmbedder
from ragbed.retrieval.types import MAX_PARTS

READ = TypeAdapter(RetrieverSettings)
PAGES = {"reefs": "# Reefs\n\nCrabs live on the northern reef.\n\nThe reef of the north grows slowly.\n",
         "bells": "# Bells\n\nBells that are cast in winter ring lower.\n\nA bell of bronze rings for a minute.\n",
         "lamps": "# Lamps\n\nThe lamp was lit in 1871 by a keeper.\n\nNorthern lamps burn oil.\n"}
DOCUMENTS = {name: Document(name, f"{name}.txt", name, "", text) for name, text in PAGES.items()}
CHUNKS = [Chunk.of(document, "plain", document.plain.index(line), document.plain.index(line) + len(line))
          for document in DOCUMENTS.values() for line in document.plain.splitlines() if line and line[0] != "#"]


@pytest.fixture(scope="module")
def collection(tmp_path_factory):
    embedder = CachedEmbedder(Words(100), tmp_path_factory.mktemp("vectors"))
    return Pool({"all": CHUNKS}, embedder, DOCUMENTS).scope("all")


def found(collection, settings, query="Which crabs live in the north?", k=3):
    return READ.validate_python(settings).open(collection, RerankerDeps()).search([query], k)[0]


ALL = {"kind": "expanded", "largest": 60, "of": {"kind": "mmr", "balance": 0.7, "of": "fused"}}


def test_every_kind_may_stand_in_every_other(collection):
    settings = {"kind": "fused", "of": [ALL, "fused", {"kind": "mmr", "of": "bm25", "relevance": "score"}]}
    first = found(collection, settings)
    assert first[0].chunk.document == "reefs"
    assert first == found(collection, settings)
    assert all(hit.found_by.startswith("fused(") for hit in first)


def deep(levels):
    settings = "dense"
    for _ in range(levels):
        settings = {"kind": "mmr", "of": settings}
    return settings


def wide(levels):
    settings = "dense"
    for _ in range(levels):
        settings = {"kind": "fused", "of": [settings, {"kind": "mmr", "of": settings}]}
    return settings


def endless():
    settings = {"kind": "mmr"}
    settings["of"] = settings
    return settings


@pytest.mark.parametrize("made", [lambda: deep(MAX_PARTS), lambda: deep(5_000), lambda: wide(40), endless,
                                  lambda: {"kind": "fused", "of": ["dense"] * MAX_PARTS}])
def test_settings_that_hold_too_many_retrievers_are_refused_at_once(made):
    """The error's text would show all that was given, which is without end."""
    with pytest.raises(ValidationError) as error:
        READ.validate_python(made())
    assert [one["msg"] for one in error.value.errors(include_input=False)] == [
        "Value error, combines more than 32 retrievers; remove some"]


@pytest.mark.parametrize("settings", ["dense", "bm25", "fused", "mmr", "expanded", ALL])
def test_a_filter_reaches_every_retriever(collection, settings):
    left = filter_collection(collection, normalise_filter("source != reefs.txt and source != lamps.txt"))
    hits = found(left, settings, "northern bell", 9)
    assert {hit.chunk.document for hit in hits} == {"bells"}
    assert found(filter_collection(collection, ("source = none",)), settings, "northern bell") == []
