"""The order in which questions are asked: what begins alike follows each other, and nothing else changes."""
import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from ragbed.experiments import Plan, check_settings
from ragbed.experiments.guests.datasets.detectiveqa import DetectiveQa
from ragbed.experiments.running.jobs import Prefix, group_turns, list_jobs, prompt_prefix, sort_by_prefix
from ragbed.experiments.running.resources import Resources

NOVELS = {"kind": "detectiveqa", "path": str(Path(__file__).parent / "data" / "detectiveqa")}
FACTORS = {"conditions": ["full", "gold", "closed-book"], "reasoning": ["direct", "chain_of_thought"],
           "repeats": 2, "calls": {"temperature": 1.0}}
BENCHMARK = DetectiveQa(path=NOVELS["path"]).load()


def orders(**settings):
    """The beginnings of all jobs that show documents, by question and cell, and as they are asked."""
    checked = check_settings({"name": "town", "benchmark": NOVELS, **FACTORS, **settings}, "town")
    plan = Plan.of(checked, BENCHMARK)
    resources = Resources(plan)

    def begins(job):
        return prompt_prefix(job, checked.layout, resources)

    jobs = list(list_jobs(plan.cells, BENCHMARK.questions))
    asked = list(sort_by_prefix(jobs, begins))
    assert sorted(map(id, asked)) == sorted(map(id, jobs))
    return [[begins(job) for job in order if job.cell.condition != "closed-book"] for order in (jobs, asked)]


def changes(values):
    """How often a server that keeps one beginning has to read another."""
    return sum(now != before for before, now in pairwise([None, *values]))


def test_questions_over_one_novel_and_repeats_read_it_once():
    before, asked = orders()
    assert (len(asked), changes(before), changes(asked), len(set(asked))) == (32, 16, 7, 7)
    whole = [begins for begins in asked if begins.rest[0][2] == 0]  # from the novel's first character
    assert (len(whole), changes(begins.first for begins in whole)) == (16, 2)
    assert asked[:12] == whole[:12]


def test_as_published_the_question_comes_first_and_repeats_share_what_follows_it():
    before, asked = orders(layout="as_published", conditions="full")
    assert (len(asked), changes(before), changes(asked)) == (16, 16, 8)


def test_searches_of_one_retriever_stand_together():
    retrievers = [{"name": "two", "k": 2}, {"name": "three", "k": 3}]
    before, asked = orders(conditions="retrieved", retriever=retrievers)
    assert (len(asked), changes(before), changes(asked)) == (32, 16, 8)


def test_least_to_most_comes_first_because_its_first_prompt_lacks_the_rules():
    checked = check_settings({"name": "town", "benchmark": NOVELS, "conditions": "full",
                              "reasoning": ["direct", "least_to_most", "chain_of_draft"]}, "town")
    plan = Plan.of(checked, BENCHMARK)
    resources = Resources(plan)
    asked = sort_by_prefix(list_jobs(plan.cells, BENCHMARK.questions[:1]),
                           lambda job: prompt_prefix(job, checked.layout, resources))
    assert [job.cell.reasoning for job in asked] == ["least_to_most", "direct", "chain_of_draft"]


def test_what_shares_nothing_is_asked_by_question_and_groups_are_bounded():
    checked = check_settings({"name": "town", "benchmark": NOVELS, "conditions": "closed-book"}, "town")
    cell, = Plan.of(checked, BENCHMARK).cells
    questions = [replace(BENCHMARK.questions[0], id=str(number)) for number in range(40)]

    def order(first):
        asked = sort_by_prefix(list_jobs([cell], questions), lambda job: Prefix((first(int(job.question.id)),)))
        return [int(job.question.id) for job in asked]

    assert order(lambda number: number) == list(range(40))
    assert order(lambda number: number % 2) == [*range(0, 16, 2), *range(1, 16, 2), *range(16, 32, 2),
                                                *range(17, 32, 2), *range(32, 40, 2), *range(33, 40, 2)]


@pytest.fixture
def run_of(serve, town, ragbed):
    server = serve(lambda body: "<Answer>A</Answer>")

    def run(at_once):
        path = town.config(server.url, file=f"town{at_once}", name=f"town{at_once}", benchmark=NOVELS, **FACTORS,
                           concurrency=at_once)
        status, _, err = ragbed("run", path)
        assert status == 0, err
        return server, json.loads((town.run.parent / f"town{at_once}" / "summary.json").read_text())
    return run


@pytest.mark.slow
def test_prompts_are_sent_in_that_order_and_the_results_do_not_depend_on_it(run_of):
    server, alone = run_of(1)
    shown = [body["messages"][1]["content"].partition("Rules:")[0] for body, _ in server.requests]
    shown = [text for text in shown if "<documents>" in text]
    assert (len(shown), changes(shown), len(set(shown))) == (32, 7, 7)
    assert [text.count("Ida lit the lamp") for text in shown[:13]] == [1] * 12 + [0]
    _, many = run_of(8)
    assert alone["results"] == many["results"]


def test_a_run_that_only_searches_takes_its_cells_one_after_the_other():
    cells = Plan.of(check_settings({"name": "town", "benchmark": NOVELS, **FACTORS}, "town"), BENCHMARK).cells
    jobs = list(list_jobs(cells, BENCHMARK.questions))
    assert group_turns(jobs, by_cell=False) == [jobs]
    turns = group_turns(jobs, by_cell=True)
    assert [{job.cell for job in turn} for turn in turns] == [{cell} for cell in cells]
    assert sorted(map(id, jobs)) == sorted(id(job) for turn in turns for job in turn)
