"""few_shot: worked examples that belong to a strategy, from a file that is read when settings are checked."""
import json

import pytest
from gathering import Scene, decisions

from ragbed.documents import SettingsError
from ragbed.strategies import parse_strategy
from ragbed.strategies.settings.strategy_config import reasoning

MILL = {"question": "Which mill opened first?", "documents": ["The north mill opened in 1871.", "The south in 1880."],
        "reasoning": "1871 comes before 1880.", "answer": "The north mill [1]"}
LAMP = {"question": "Who lit the lamp?", "answer": "Ada"}
TOLD = {"question": "How many people live in town 2?", "answer": "222"}


@pytest.fixture
def write(tmp_path):
    def write(*lines, name="mills.jsonl"):
        path = tmp_path / name
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
        return str(path)
    return write


def prompts(settings, **replies):
    scene = Scene({"": "jaws"}, replies)
    answer = scene.play("once", reasoning(settings))
    return scene, answer


def test_the_prompts_of_the_strategy_inside_show_the_first_examples_of_the_file(write):
    file = write(MILL, LAMP)
    scene, _ = prompts({"kind": "few_shot", "exemplars": file})
    shown = scene.prompts("answer")[0]
    assert shown.index("Text of jaws") < shown.index("Example 1:") < shown.index("Example 2:") < shown.index("Rules:")
    assert "<Thinking>1871 comes before 1880.</Thinking>\n<Answer>The north mill [1]</Answer>" in shown
    shown = prompts({"kind": "few_shot", "exemplars": file, "count": 1, "of": "direct"})[0].prompts("answer")[0]
    assert "\n\nThe north mill [1]\n\nRules:" in shown
    assert "Who lit" not in shown


def test_samples_of_few_shot_over_least_to_most_show_them_where_rules_are_shown(write):
    settings = {"kind": "self_consistency", "samples": 2,
                "of": {"kind": "few_shot", "exemplars": write(MILL), "of": "least_to_most"}}
    scene, answer = prompts(settings, decompose="What is Jaws?", solve="A film.")
    assert [(call.purpose, call.sample) for call in scene.calls] == [
        (purpose, sample) for purpose in ("decompose", "solve", "answer") for sample in (0, 1)]
    assert all("Which mill" in call.messages[1].content for call in scene.calls if call.purpose != "decompose")
    assert answer.figures == {"agreement": 1.0}
    assert decisions(answer) == [("votes", "2 of 2 agree")]


def test_settings_keep_the_path_tables_the_name_of_the_file_and_its_content_is_a_source(write):
    file = write(MILL)
    found = parse_strategy("reasoning", {"kind": "self_consistency", "of": {"kind": "few_shot", "exemplars": file}})
    assert found.spec == {"kind": "self_consistency", "of": {"kind": "few_shot", "exemplars": file}}
    assert found.label == "self_consistency(few_shot(exemplars=mills.jsonl))"
    before = found.sources
    assert list(before) == [file]
    write({**MILL, "answer": "The south mill"})
    assert found.sources == before
    after = parse_strategy("reasoning", found.spec).sources
    assert list(after) == [file]
    assert after != before


@pytest.mark.parametrize(("settings", "says"), [
    ({}, "strategy few_shot: exemplars is required"), ({"exemplars": 3}, "expected the path of a file, not 3"),
    ({"exemplars": "nowhere.jsonl"}, "exemplars: nowhere.jsonl: no such file"), ({"exemplars": ""}, "an empty path"),
    ({"exemplars": "."}, "exemplars: .: not a file"),
    ({"exemplars": "a\0b"}, "cannot be read"), ({"exemplars": "mills.jsonl", "count": 0}, "count")])
def test_what_does_not_fit_is_one_line(settings, says, monkeypatch, tmp_path, write):
    write(MILL)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SettingsError) as refused:
        parse_strategy("reasoning", {"kind": "few_shot", **settings})
    assert says in str(refused.value)
    assert "\n" not in str(refused.value)


def test_an_example_that_tells_an_answer_is_refused_wherever_the_strategy_stands(serve, town, ragbed, write):
    few = {"kind": "few_shot", "exemplars": write(MILL, TOLD)}
    for strategy in (few, {"kind": "self_consistency", "of": few}):
        ragbed.refuses("run", town.config(serve(town.reply).url, reasoning=strategy),
                       says=["mills.jsonl: example 2 asks the question non_refusal-2 of", "would reveal its answer"])


def test_a_changed_file_is_asked_again_and_both_sizes_are_cells_of_one_run(serve, town, ragbed, write):
    file = write(MILL, LAMP)
    server = serve(town.reply)
    path = town.config(server.url, reasoning=["chain_of_thought",
                                              {"kind": "few_shot", "exemplars": file, "count": [1, 2]}])
    assert ragbed("run", path)[0] == 0
    summary = json.loads((town.run / "summary.json").read_text())
    assert [cell["reasoning"] for cell in summary["cells"]] == [
        "chain_of_thought", "few_shot(exemplars=mills.jsonl, count=1)", "few_shot(exemplars=mills.jsonl, count=2)"]
    assert list(json.loads((town.run / "manifest.json").read_text())["sources"]) == [file]
    asked = len(server.requests)
    assert ragbed("run", path)[0] == 0
    assert len(server.requests) == asked
    write({**MILL, "answer": "The south mill"}, LAMP)
    status, _, err = ragbed("run", path)
    assert (status, f"another version of {file}" in err) == (0, True)
    assert len(server.requests) == asked + 12  # of both sizes, and none of chain_of_thought
    assert ragbed("report", town.run)[0] == 0
    assert ragbed("verify", town.run)[0] == 0


def test_replies_are_read_again_with_the_examples_that_they_answered_and_else_stay_as_they_are(
        serve, town, ragbed, write):
    file = write(MILL)
    assert ragbed("run", town.config(serve(town.reply).url, reasoning={"kind": "few_shot", "exemplars": file}))[0] == 0
    before = town.hashes()
    for lines, says in (([MILL], None), ([LAMP], "has changed since the run"), ([], "contains no example")):
        write(*lines)
        status, out, err = ragbed("rescore", town.run)
        assert (status, town.hashes()) == (0, before)
        assert says is None or says in " ".join((out + err).split()), (out, err)
