"""The first step at which two answers to one question part, and how many questions part where."""

import pytest


@pytest.fixture
def two(serve, town, ragbed):
    """Two runs of one cell: in the second the model says something else of towns 1 and 4."""
    def changed(body):
        said = town.reply(body)
        asked = body["messages"][-1]["content"]
        return said if "in town 1?" not in asked and "in town 4?" not in asked else "<Answer>nothing [1]</Answer>"

    for name, script in (("town", town.reply), ("other", changed)):
        assert ragbed("run", town.config(serve(script).url, name))[0] == 0
    return town.run, town.run.parent / "other"


def steps(ragbed, *args):
    return ragbed.json("compare", *args, "--steps")["steps"]


def test_equal_prompts_with_other_replies_part_at_the_reply(two, ragbed):
    one, = steps(ragbed, *two)
    where = {divergence["question"]: divergence["where"] for divergence in one["questions"]}
    assert len(where) == 6
    assert sorted(set(where.values())) == ["2 answer: the reply", "nowhere"]
    assert [bar["questions"] for bar in one["histogram"]] == [2, 4]
    assert [bar["where"] for bar in one["histogram"]] == ["2 answer: the reply", "nowhere"]
    assert [(bar["up"], bar["down"]) for bar in one["histogram"]][1] == (0, 0)


def test_strategies_part_at_their_first_prompt_and_a_decomposition_at_its_first_call(serve, town, ragbed):
    server = serve(town.reply)
    assert ragbed("run", town.config(server.url, reasoning=["direct", "chain_of_thought", "least_to_most"]))[0] == 0
    found = {one["second_name"]: [bar["where"] for bar in one["histogram"]] for one in steps(ragbed, town.run)}
    assert found["chain_of_thought"] == ["2 answer: the prompt"]
    assert found["least_to_most"] == ["2 answer against decompose"]


def test_other_evidence_parts_at_what_was_found(serve, town, ragbed):
    server = serve(town.reply)
    assert ragbed("run", town.config(server.url, conditions=["given", "gold"]))[0] == 0
    one, = steps(ragbed, town.run)
    assert [bar["where"] for bar in one["histogram"]] == ["1 search: what was found"]


def test_a_run_against_itself_parts_nowhere(two, ragbed):
    one, = steps(ragbed, two[0], two[0])
    assert [(bar["where"], bar["questions"]) for bar in one["histogram"]] == [("nowhere", 6)]
