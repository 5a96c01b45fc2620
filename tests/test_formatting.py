"""Names and numbers as text."""
import pytest

from ragbed.experiments.cells import label_rows, short_name
from ragbed.experiments.formatting import format_dollars, format_percent, join_names, metric_title, plural
from ragbed.experiments.terminal.display import Column, print_rows, wrap_name


@pytest.mark.parametrize(("name", "words"), [
    ("em", "exact match"), ("recall@5", "recall@5"), ("ndcg@10", "nDCG@10"),
    ("sub_em@2", "sub-question 2: exact match"), ("accuracy", "accuracy"), ("my_own", "my own")])
def test_metrics_have_titles(name, words):
    assert metric_title(name) == words


@pytest.mark.parametrize(("model", "name"), [
    ("http://host:80/v1#gpt-4o", "gpt-4o"), ("openai:gpt-4o", "gpt-4o"), ("gguf:models/a.gguf", "a"),
    ("lexical", "lexical"), ("http://host/v1#", "http://host/v1#"), ("openai:", "openai:")])
def test_a_model_has_a_short_name(model, name):
    assert short_name(model) == name


def test_models_are_called_by_their_short_names_where_these_tell_them_apart():
    def named(*models):
        return label_rows([{"id": model, "model": model, "reasoning": "direct"} for model in models])
    assert named("http://a/v1#small", "http://b/v1#large", "gguf:m/x.gguf") == ["small", "large", "x"]
    assert named("http://a/v1#m", "http://b/v1#m", "openai:n") == ["http://a/v1#m", "http://b/v1#m", "n"]


def test_numbers_as_text():
    assert [plural(count, "cell") for count in (0, 1, 1200)] == ["0 cells", "1 cell", "1,200 cells"]
    assert [format_percent(share) for share in (0, 0.001, 0.336, 0.999, 1)] == ["0 %", "<1 %", "34 %", ">99 %", "100 %"]
    assert [format_dollars(sum_) for sum_ in (0, 0.00123, 0.5, 1234.5)] == ["$0", "$0.0012", "$0.5", "$1,234.50"]
    assert join_names(["a", "b", "c", "d"], 3) == "a, b and 2 more"


def test_a_narrow_table_drops_columns_and_wraps_names_between_their_parts(capsys, monkeypatch):
    monkeypatch.setattr("ragbed.experiments.terminal.display._WIDTH", 40)
    monkeypatch.delenv("COLUMNS", raising=False)
    columns = [Column("cell", ["chain_of_thought · retrieved", "chain_of_draft · gold"], share=0.4,
                      right=False), Column("score", ["0.39 [0.25, 0.55]", "0.32 [0.19, 0.45]"]),
               Column("n", ["60", "60"], 1), Column("tokens", ["824", "1,200"], 2)]
    assert print_rows(columns, "run") == ["tokens"]
    title, *lines = capsys.readouterr().out.splitlines()
    assert (title, [line.rstrip() for line in lines[1:]]) == ("run", [
        "chain_of_thought  0.39 [0.25, 0.55]  60", "· retrieved", "chain_of_draft ·  0.32 [0.19, 0.45]  60", "gold"])
    assert [wrap_name("chain_of_thought → direct, gold", width) for width in (31, 30, 19, 8)] == [
        "chain_of_thought → direct, gold", "chain_of_thought → direct,\ngold", "chain_of_thought →\ndirect, gold",
        "chain_of\n_thought\n→\ndirect,\ngold"]
