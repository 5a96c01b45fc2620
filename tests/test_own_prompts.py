"""Texts of your own in prompts: the setting `prompts`, and `instruction` and `system` of a strategy."""
import pytest
from each_case import each

from ragbed.agents import Scripted
from ragbed.documents import SettingsError
from ragbed.strategies import ANSWERING, parse_strategy, sweep
from ragbed.strategies.prompting import replace_prompts, template, with_prompts
from ragbed.strategies.settings.prompt_texts import read_prompts
from ragbed.strategies.settings.strategy_config import reasoning


@pytest.fixture
def folder(tmp_path):
    def write(name="mine", **texts):
        (tmp_path / name).mkdir(exist_ok=True)
        for text, content in texts.items():
            (tmp_path / name / f"{text}.md").write_text(content)
        return tmp_path / name
    return write


def prompts(spec, *replies):
    model = Scripted(lambda call: replies[0] if replies else "Oslo [1]", ["Oslo is in Norway."])
    model.play(reasoning(spec))
    return [[message.content for message in call.messages] for call in model.calls]


@each("name", [name for name in ANSWERING if name not in ("few_shot", "semi_structured")])
def test_instruction_and_system_reach_a_prompt_of_every_strategy_behind_the_documents(name):
    spec = {"kind": name, "instruction": "Answer like a pirate.", "system": "You are Polly."}
    calls = prompts(spec)
    assert all(messages[0] == "You are Polly." for messages in calls)
    told = [text for messages in calls for text in messages if "\n- Answer like a pirate.\n" in text]
    assert told
    plain = prompts(name)
    start = plain[0][1].index("</documents>")
    assert all(text[:start] == plain[0][1][:start] for text in told if "</documents>" in text)


def test_texts_of_an_inner_strategy_are_its_own_and_a_sweep_has_short_labels():
    inner = {"kind": "direct", "system": "You are Polly."}
    spec = {"kind": "self_consistency", "of": inner, "samples": 2, "instruction": "Be kind."}
    assert {(messages[0], "- Be kind." in messages[1]) for messages in prompts(spec)} == {("You are Polly.", True)}
    swept = [parse_strategy("reasoning", one).label for one in sweep("reasoning", {
        "kind": "direct", "instruction": ["Be kind.", "Answer in one sentence and cite the best document."]})]
    assert swept == ["direct(instruction=Be kind.)", "direct(instruction=Answer in one senten… bc89)"]


@pytest.mark.parametrize(("family", "spec", "says"), [
    ("reasoning", {"kind": "direct", "instruction": " "}, "instruction: expected a text"),
    ("reasoning", {"kind": "direct", "system": 3}, "system: expected a text"),
    ("reasoning", {"kind": "search_only", "system": "x"}, "system has no effect"),
    ("retrieval", {"kind": "hyde", "instruction": "x"}, "instruction has no effect"),
    ("reasoning", {"kind": "direct", "instructions": "x"}, "choose from: instruction, system"),
])
def test_texts_that_cannot_act_are_refused(family, spec, says):
    with pytest.raises(SettingsError, match=says):
        parse_strategy(family, spec)


@pytest.mark.parametrize(("texts", "says"), [
    ({"drect": "x"}, r"mine/drect.md: ragbed has no prompt drect; did you mean direct.md?"),
    ({"prompt_variants": "x"}, "has no prompt prompt_variants"),
    ({"exemplar": "{number} {documents} {question}"}, r"the field {solution} is missing"),
    ({"direct": "Answer {questoin}"}, r"unknown field {questoin}; this prompt's fields: none. For the text {questoin} "
                                      r"itself, write {{questoin}}"),
    ({"direct": " "}, "expected a text"),
    ({}, "not a folder with texts such as direct.md"),
])
def test_a_folder_with_texts_that_replace_nothing_is_refused_with_the_file(folder, texts, says):
    with pytest.raises(SettingsError) as refused:
        read_prompts(folder(**texts))
    assert says in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_replaced_text_may_hold_braces(folder):
    texts = read_prompts(folder(direct='Write {"answer": {"text": "..."}} and {{word}}.', instruction=""))
    with replace_prompts(texts):
        assert template("direct") == 'Write {"answer": {"text": "..."}} and {word}.'
    assert template("direct") != texts["direct"]


def test_replaced_texts_end_with_the_strategy_that_has_them():
    model = Scripted(["Oslo"], ["Oslo is in Norway."])
    model.play(with_prompts(reasoning("direct"), {"direct_cited": "Just say it."}))
    assert "Just say it." in model.calls[0].messages[1].content
    assert "Just say it." not in prompts("direct")[0][1]


@pytest.mark.slow
def test_folders_of_prompts_are_a_factor_of_a_run(serve, town, ragbed, folder):
    server, short = serve(town.reply), folder("short", direct_cited="Answer in three words.")
    made = ragbed.json("run", town.config(server.url, reasoning=["direct", "quote_first"]))
    sent = len(server.requests)
    path = town.config(server.url, name="both", reasoning=["direct", "quote_first"], prompts=["default", str(short)])
    both = ragbed.json("run", path)
    assert [(cell["reasoning"], cell["prompts"]) for cell in both["cells"]] == [
        ("direct", "default"), ("quote_first", "default"), ("direct", "short"), ("quote_first", "short")]
    asked = [body["messages"][1]["content"] for body, _ in server.requests[sent:]]
    assert sum("Answer in three words." in text for text in asked) == made["cells"][0]["n"]
    assert "prompts" in {one["factor"] for one in both["effects"]["factors"]}
    assert both["cells"][0]["metrics"] == made["cells"][0]["metrics"]
    (short / "direct_cited.md").write_text("Answer in four words.")
    sent = len(server.requests)
    status, _, err = ragbed("run", path)
    assert (status, len(server.requests) - sent) == (0, made["cells"][0]["n"])  # the changed cell alone
    assert "another version of short/direct_cited.md" in err


def test_prompts_without_effect_are_refused(serve, town, ragbed, folder):
    ragbed.refuses("run", town.config("http://127.0.0.1:9/v1", prompts=[str(folder("a", direct="x")), str(
        folder("b") / ".." / "a")]), says=["prompts", "duplicate value"])
