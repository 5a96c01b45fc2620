"""The sentences and the main table of a run: they claim what the paired tests show, and no more."""
import pytest

from ragbed.experiments.report.cell_table import table
from ragbed.experiments.report.pareto import cost_of, merge_replicates, pareto_front
from ragbed.experiments.report.summary_table import ranked_plot, summary_rows
from ragbed.experiments.report.summary_text import count_failed, summary_text


def cell(reasoning, mean=0.5, condition="provided", tokens=1000, **fields):
    figure = {"mean": mean, "low": None if mean is None else mean - 0.1, "high": None if mean is None else mean + 0.1,
              "n": 100}
    return {"id": f"{reasoning}/{condition}", "model": "m", "reasoning": reasoning, "rules": "grounded",
            "condition": condition, "repeat": 0, "seed": None, "judge": "http://host/v1#gpt-4o", "scoring": "corrected",
            "n": 100, "outcomes": {"answered": 100}, "metrics": {"unified": figure},
            "usage": {"prompt_tokens": 100 * tokens, "completion_tokens": 0, "calls": 100, "price": None}, **fields}


def pair(first, second, difference, p=0.5, factor="reasoning", **fields):
    """Of the second cell against the first."""
    return {"factor": factor, "first": first, "second": second, "n": 100, "clusters": 100, "unpaired": 0, "before": 0.5,
            "after": 0.5 + difference, "difference": difference, "low": difference - 0.1, "high": difference + 0.1,
            "gained": 9, "lost": 4, "test": "permutation", "p": p, "p_holm": p, "odds": None, "dz": 0.2,
            "smallest": 0.15, **fields}


def sentences(cells, *pairs, **more):
    """Without pairs the summary has no comparisons."""
    summary = {"comparisons": {"metric": "unified", "pairs": list(pairs), "notes": []} if pairs else None, **more}
    return summary_text(summary, merge_replicates(table(cells, ["unified"])))


THREE = [cell("direct", 0.5), cell("draft", 0.6), cell("plan", 0.7)]


@pytest.mark.parametrize(("pairs", "end"), [
    ([pair("direct/provided", "plan/provided", 0.2, p=0.01), pair("draft/provided", "plan/provided", 0.1)],
     ", significantly higher than `direct`, but with 100 questions not than `draft`."),
    ([pair("direct/provided", "plan/provided", 0.2, p=0.01), pair("plan/provided", "draft/provided", -0.1, p=0.02)],
     ", significantly higher than the other 2 strategies."),
    ([pair("direct/provided", "plan/provided", 0.2), pair("plan/provided", "draft/provided", -0.1)],
     ", but with 100 questions it is not significantly different from the other 2 strategies."),
    ([pair("direct/provided", "plan/provided", 0.2, p=0.01, p_holm=0.06)],  # significant before correction only
     ", but with 100 questions it is not significantly different from `direct`."),
    ([pair("plan/provided", "draft/provided", 0.1, p=0.01, unpaired=30)],
     ", but over the questions that both have, `draft` scores significantly higher."),
    ([pair("direct/provided", "draft/provided", 0.1)], ", but no other cell was tested against it."),
    ([], ", but no difference was tested.")])
def test_the_headline_says_how_far_the_best_cell_is_better(pairs, end):
    assert sentences(THREE, *pairs)[0] == f"`plan` scores highest (0.70){end}"


@pytest.mark.parametrize(("cells", "headline"), [
    ([cell("direct", None)], "No unified score (gpt-4o) could be computed."),
    ([cell("direct", 0.0)], "`direct` scores 0.00 over 100 questions."),
    ([cell("direct", 0.0), cell("plan", 0.0)], "Both strategies score 0.00."),
    ([cell("direct", 0.5), cell("plan", 0.5), cell("draft", 0.4)], "`direct` and `plan` share the best score "
                                                                   "(0.50)."),
    ([cell("direct", 0.5), cell("plan", 0.7, judge="lexical")],
     "The cells were graded by different judges, so their unified score cannot be compared.")])
def test_the_headline_of_ties_and_of_runs_with_little_to_say(cells, headline):
    assert sentences(cells) == [headline]
    assert summary_text({}, table([])) == []


def test_the_lowest_score_is_the_best_where_less_is_better():
    cells = [{**cell(name, tokens=tokens), "metrics": {"wrong": {"mean": mean, "low": 0.0, "high": 1.0, "n": 100}}}
             for name, mean, tokens in (("direct", 0.5, 500), ("plan", 0.2, 1000), ("draft", 0.3, 2000))]
    tested = [pair("direct/provided", "plan/provided", -0.3, p=0.01), pair("draft/provided", "plan/provided", -0.1)]
    summary, made = {"comparisons": {"metric": "wrong", "pairs": tested, "notes": []}}, table(cells, ["wrong"])
    text = summary_text(summary, made)
    assert text[0] == ("`plan` scores lowest, which is best (0.20), significantly lower than `direct`, but with 100 "
                       "questions not than `draft`.")
    assert "`draft` from `plan` (0.10 apart)" in text[1]
    assert [row.cell.label for row, _, _ in ranked_plot(summary_rows(summary, made), made).rows] == [
        "plan", "draft", "direct"]
    assert [one.label for one in pareto_front(made, cost_of(made.cells))] == ["direct", "plan"]


@pytest.mark.parametrize(("conditions", "start"), [
    (("provided", "retrieved", "gold"), "With retrieval, `x` scores"),
    (("gold", "full"), "With the whole document, `x` "),
    (("closed-book", "gold"), "With perfect retrieval, `x` "), (("provided", "full"), "`x · full` scores highest")])
def test_the_best_cell_is_sought_under_the_condition_that_a_user_has(conditions, start):
    cells = [cell(name, 0.5 + 0.1 * (name == "x") + 0.01 * at, condition)
             for at, condition in enumerate(conditions) for name in "xy"]
    assert sentences(cells)[0].startswith(start)
    dropped = cell("plan", 1.0, id="dropped", perturbation="drop_gold")
    assert sentences([*THREE, dropped])[0].startswith("With the provided passages, `plan` scores highest (0.70)")


def test_retrieval_is_compared_with_no_documents():
    cells = [cell("direct", 0.5, "retrieved"), cell("direct", 0.1, "closed-book")]

    def found(difference, p):
        return sentences(cells, pair("direct/closed-book", "direct/retrieved", difference, p, "condition"))[1]
    assert found(0.4, 0.004) == "Retrieval clearly helps: 0.90 with it, 0.50 without (p = 0.004)."
    assert found(0.1, 0.2) == "Retrieval makes no significant difference: 0.60 with it, 0.50 without (p = 0.200)."
    assert found(-0.4, 1e-9) == "Retrieval hurts: 0.10 with it, 0.50 without (p <0.001)."


def test_what_a_closer_look_needs_and_what_is_cheaper_is_said():
    cells = [cell("direct", 0.5, tokens=300), cell("draft", 0.6, tokens=400), cell("plan", 0.7, tokens=1200)]
    effects = {"factors": [{"factor": "reasoning", "p_holm": 0.01}, {"factor": "model", "p_holm": 0.3},
                           {"factor": "rules", "p_holm": None}]}
    assert sentences(cells, pair("direct/provided", "plan/provided", 0.2, p=0.01),
                     pair("draft/provided", "plan/provided", 0.1),
                     effects=effects)[1:] == [
        "To tell `draft` from `plan` (0.10 apart) you would need about 220 questions.",  # 100 * (0.15 / 0.10)²
        "`draft` takes 33 % of the tokens of `plan`, without a significant difference.",
        "1 of 2 pairs differs significantly after Holm correction (p < 0.05).",
        "Significant factor: reasoning (p = 0.010)."]


def test_failures_are_counted_and_come_first_if_they_are_many():
    few = [cell("direct", outcomes={"answered": 97, "error": 2, "too_long": 1}), cell("plan", 0.6)]
    assert sentences(few)[-1] == "3 of 200 answers failed and count as wrong."
    assert "are left out of the published metrics" in sentences([one | {"scoring": "as-published"} for one in few])[-1]
    row = {"id": "a", "n": 20, "metrics": {}, "usage": {}, "outcomes": {"answered": 19, "error": 1}}
    assert count_failed(table([row, {**row, "id": "b", "outcomes": {"answered": 10, "timeout": 10}}])) == (11, 40)
    many = [cell("direct", outcomes={"answered": 80, "timeout": 20})]
    assert sentences(many)[0] == "20 of 100 answers failed and count as wrong."
    assert sentences([cell("direct", outcomes={"answered": 90, "malformed": 10})])[0].startswith(
        "10 of 100 replies could not be read as an answer: ")
    assert sentences([cell("direct", outcomes={"answered": 91, "malformed": 9})])[0].startswith("`direct`")
    assert sentences([cell("direct", outcomes={"error": 100})]) == [
        "All 100 answers failed: the figures say nothing about the cells."]


def test_a_race_has_its_own_sentences():
    summary = {"comparisons": {"metric": "unified", "pairs": [], "said": ["The race ended."]}}
    assert summary_text(summary, table(THREE, ["unified"])) == ["The race ended."]


def test_the_front_holds_what_nothing_beats_at_both():
    cells = [cell("a", 0.5, tokens=100), cell("b", 0.4, tokens=200), cell("c", 0.6, tokens=300),
             cell("d", 0.6, tokens=400), cell("e", 0.5, tokens=100), cell("f", None, tokens=1)]
    made = table(cells, ["unified"])
    assert [one.label for one in pareto_front(made, cost_of(made.cells))] == ["a", "e", "c"]


def test_rows_have_the_difference_to_the_first_cell_and_are_ranked_on_one_axis():
    made = table([*THREE, cell("lost", None)], ["unified"])
    stored = {"comparisons": {"metric": "unified", "pairs": [pair("draft/provided", "direct/provided", -0.1, p=0.2)]}}
    rows = summary_rows(stored, made)
    assert [one.difference and one.difference.difference for one in rows] == [None, 0.1, None, None]
    plot = ranked_plot(rows, made)
    assert [one.cell.label for one, _, _ in plot.rows] == ["plan", "draft", "direct", "lost"]
    assert [at is None for _, at, _ in plot.rows] == [False, False, False, True]
    assert plot.rows[2][1] == plot.baseline
