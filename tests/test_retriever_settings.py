"""Retrievers in a run's settings."""
import json

import pytest
from each_case import each
from pydantic import TypeAdapter, ValidationError
from pydantic.fields import FieldInfo

from ragbed.documents import SettingsError
from ragbed.experiments import Plan, check_settings
from ragbed.experiments.running.budget import check_prices
from ragbed.experiments.running.fingerprint import identities
from ragbed.experiments.settings.retrievers import SearchSettings
from ragbed.experiments.settings.run_settings import RunSettings
from ragbed.experiments.settings.texts import parse_retriever
from ragbed.retrieval import RetrieverSettings
from ragbed.retrieval.retrievers import KINDS

READ = TypeAdapter(RetrieverSettings)


def settings_of(retriever):
    return check_settings({"name": "town", "benchmark": {"kind": "demo"}, "retriever": retriever}, "town.yaml")


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_no_retriever_kind_has_a_setting_that_runs_add(kind):
    assert not {name for name in SearchSettings.model_fields if hasattr(kind, name)}


def test_every_kind_can_be_named_in_a_run_and_read_back():
    defaults = {kind.model_fields["kind"].default: kind for kind in KINDS}
    names = [name for name, kind in defaults.items() if not any(map(FieldInfo.is_required, kind.model_fields.values()))]
    assert {"bm25", "dense", "fused", "reranked", "mmr", "expanded"} <= {*names}
    settings = settings_of(names)
    assert [one.name for one in settings.retriever] == [f"{name}@5" for name in names]
    again = RunSettings.model_validate(json.loads(settings.model_dump_json(by_alias=True)))
    assert again.retriever == settings.retriever
    assert [one.identity() for one in again.retriever] == [one.identity() for one in settings.retriever]


def test_retrievers_of_one_kind_are_named_by_their_other_settings():
    settings = settings_of(["bm25", {"kind": "bm25", "tokenizer": "words"}, {"kind": "reranked", "of": "bm25"},
                            {"kind": "reranked", "of": "fused"}])
    assert [one.name for one in settings.retriever] == [
        "bm25@5", "bm25@5 (tokenizer words)", "reranked@5 (of bm25)", "reranked@5"]
    again = RunSettings.model_validate(json.loads(settings.model_dump_json(by_alias=True)))
    assert again.retriever == settings.retriever


def test_a_retriever_without_a_kind_is_dense():
    (one,) = settings_of({"k": 3}).retriever
    assert (one.kind, one.name, one.k) == ("dense", "dense@3", 3)


@pytest.mark.parametrize(("retriever", "says"), [
    ("bm25x", "retriever.0: unknown kind bm25x; did you mean 'bm25'?"),
    ({"kind": "fused", "of": ["dense", "foo"]}, "retriever.0.of.1: unknown kind foo"),
    ({"kind": "fused", "of": ["dense", {"kind": "bm25", "k": 3}]}, "unknown setting 'retriever.0.of.1.k'"),
    ({"kk": 3}, "unknown setting 'retriever.0.kk'; did you mean 'k'?"),
    ([{"kind": "bm25"}, "bm25"], "retriever: two have the name bm25@5; give each a different `name`"),
    (["dense", {"where": "page > 3"}], "retriever: two have the name dense@5; give each a different `name`"),
    ({"kind": "dense", "where": "page >="}, "where"),
])
def test_invalid_input_is_a_one_line_error(retriever, says):
    with pytest.raises(SettingsError) as error:
        settings_of(retriever)
    assert says in str(error.value)
    assert "\n" not in str(error.value)


@each(("kind", "fields", "complaint"), [
    ("fused", {"of": ["dense"]}, "at least two retrievers"),
    ("fused", {"of": ["dense", {"kind": "dense"}]}, "duplicate retriever"),
    ("fused", {"of": ["dense", "sprase"]}, "'sprase' found using kind_of"),
    ("fused", {"weights": [1]}, "expected 2 numbers above 0"), ("fused", {"weights": [1, 0]}, "expected 2 numbers ab"),
    ("fused", {"weights": [1, float("nan")]}, "finite number"), ("fused", {"constant": -1}, "greater than or equal"),
    ("fused", {"depth": 0}, "greater than or equal to 1"), ("fused", {"methods": "weighted"}, "Extra inputs"),
    ("fused", {"constant": 61}, "weighted fusion does not use it"),
    ("fused", {"method": "borda"}, "'reciprocal_rank' or 'weighted'"),
    *(("reranked", {"of": "dense", **fields}, "validation error") for fields in (
        {"depth": 0}, {"weight": 0}, {"weight": 1.5}, {"by": "jugde"}, {"by": "judge"}, {"rerank": 5})),
    *(("mmr", fields, "mmr") for fields in (
        {"balance": 2}, {"balance": -0.1}, {"balance": float("nan")}, {"fetch": 0}, {"of": "nothing"}, {"lambda": 1})),
    ("bm25", {"delta": 1}, "the variant lucene does not use it"),
    *(("bm25", fields, "validation error") for fields in (
        {"k1": -1}, {"k1": float("inf")}, {"b": 2}, {"method": "tfidf"}, {"language": "klingon"}, {"x": 1}))])
def test_invalid_settings_are_refused(kind, fields, complaint):
    with pytest.raises(ValidationError, match=complaint):
        READ.validate_python({"kind": kind, **fields})


@pytest.mark.parametrize(("kind", "changes"), [
    ("fused", [{}, {"of": ["bm25", "dense"]}, {"method": "reciprocal_rank", "constant": 61}, {"weights": [1, 2]},
               {"depth": 101},
               {"method": "reciprocal_rank"}, {"of": ["dense", "bm25", {"kind": "fused", "depth": 7}]}]),
    ("reranked", [{"by": "late_interaction", "depth": 50, "weight": 0.5}, {"depth": 9}, {"weight": 0.7},
                  {"by": {"kind": "late_interaction", "precision": "bfloat16"}},
                  {"by": {"kind": "judge", "model": "m"}}, {"by": {"kind": "judge", "model": "n"}},
                  {"by": {"kind": "judge", "model": "m", "max_tokens": 99}}])])
def test_every_setting_is_part_of_the_identity(kind, changes):
    identities = [READ.validate_python({"kind": kind, **fields}).identity() for fields in changes]
    assert len(set(identities)) == len(changes)
    assert READ.validate_python(kind).identity() == identities[0]


def test_the_command_line_takes_a_name_or_settings():
    assert parse_retriever("bm25", [])[0].kind == "bm25"
    kind, where = parse_retriever("{kind: bm25, where: {year: {in: [2022, 2023]}}}", ["page = 3"])
    assert (kind.kind, where) == ("bm25", ("page = 3", "year in (2022, 2023)"))
    with pytest.raises(SettingsError, match="expected a condition"):
        parse_retriever("{kind: bm25, where: year}", [])
    kind, where = parse_retriever("{kind: fused, of: [bm25, dense]}", ["page >= 3 and source = a/*"])
    assert [one.kind for one in kind.of] == ["bm25", "dense"]
    assert where == ("page >= 3", "source = a/*")
    with pytest.raises(SettingsError, match="retriever: unknown kind bm26"):
        parse_retriever("bm26", [])


def test_a_model_that_judges_relevance_is_a_model_of_the_run():
    judge = "http://127.0.0.1:9/v1#grader"
    fields = {"name": "town", "benchmark": {"kind": "demo"},
              "retriever": {"kind": "reranked", "of": "bm25", "by": {"kind": "judge", "model": judge}}}
    settings = check_settings({**fields, "calls": {"prices": {judge: {"prompt": 1, "completion": 2}}}}, "town.yaml")
    assert settings.other_models == [judge]
    assert judge in identities(Plan.of(settings, settings.benchmark.load()), {})
    with pytest.raises(SettingsError, match=r"the price of http://127\.0\.0\.1:9/v1#grader"):
        check_prices(check_settings({**fields, "budget": {"dollars": 1}}, "town.yaml"), [])
