"""Prompts that cannot fit a model's context: known before any call, recorded with both sizes, nothing cut."""
import json
import random
from pathlib import Path

import pytest
from each_case import each
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer

from ragbed.agents import Context, LocalSettings, ModelSettings, open_model
from ragbed.agents.model_settings import is_prompt_cut, min_tokens
from ragbed.documents import CallTooLong
from ragbed.retrieval import find_model
from ragbed.retrieval.model_files import MINILM
from ragbed.strategies import Generate, Message, Usage

STORY = ("the detective looked at a door and said that night nobody had left the house before rain came over hills "
         "while old clock in corner struck twelve")
LIMIT = 8192


@each(("text", "least"), [
    ("", 0), ("Oslo is the capital.", 4), ("a-b (c) -- ... | | |", 2), ("  spaced   out  ", 2),
    ("x" * 10_000, 1), ("=" * 500, 0), ("3.5 million, or 1,000", 4), ("那天晚上没有人离开房子。" * 4, 5),
    ("서울은 대한민국의 수도이다.", 3), ("GPT 那天晚上没有人离开", 2)])
def test_the_least_number_of_tokens_counts_words_and_characters_of_scripts_without_spaces(text, least):
    assert min_tokens(text) == least


@pytest.fixture(scope="module")
def tokenizer():
    return Tokenizer.from_file(str(find_model(MINILM).path / "tokenizer.json"))


@given(st.text(st.sampled_from("abc XYZ é1,.-_|\n\t那天晚上한국ไทย😀"), max_size=300))
def test_a_tokeniser_never_finds_fewer(tokenizer, text):
    tokenizer.no_truncation()
    assert min_tokens(text) <= len(tokenizer.encode(text, add_special_tokens=False).ids)
    assert min_tokens(text) <= len(text) // 2 + 1


def test_what_leaves_no_room_for_the_reply_does_not_fit_where_the_server_insists():
    messages = [Message("user", ("word " * 200,))]
    Context(300).check(messages, 100)
    with pytest.raises(CallTooLong, match=r"at least 200 tokens and 101 for the reply, .* context has 300; nothing"):
        Context(300).check(messages, 101)
    Context(201, whole_reply=False).check(messages, 5000)
    with pytest.raises(CallTooLong, match=r"at least 200 tokens, .* context has 200"):
        Context(200, whole_reply=False).check(messages, 1)


async def test_a_call_that_cannot_fit_is_not_sent_and_one_that_may_is(serve):
    server = serve(["Paris"])
    async with open_model(f"{server.url}#m", ModelSettings(context=256)) as model:
        with pytest.raises(CallTooLong) as refused:
            await model.complete(Generate((Message("user", ("word " * 250,)),), "answer"), max_tokens=64)
        assert (refused.value.kind, refused.value.attempts, server.requests) == ("too_long", 0, [])
        assert (await model.complete(Generate((Message("user", ("Where?",)),), "answer"),
                                     max_tokens=64)).reply.text == "Paris"


async def test_a_local_model_knows_its_context_and_a_served_one_only_what_it_is_told(tmp_path):
    weights = tmp_path / "tiny.gguf"
    weights.write_bytes(b"GGUF")
    for spec, settings, expected in (
            (f"gguf:{weights}", ModelSettings(context=64_000, local=LocalSettings(context=512)), Context(512, False)),
            ("http://127.0.0.1:9/v1#m", ModelSettings(context=64_000), Context(64_000)),
            ("http://127.0.0.1:9/v1#m", ModelSettings(), None)):
        async with open_model(spec, settings) as model:
            assert model.context == expected


def novel(seed, paragraphs=2_000, words=30):
    """Paragraphs of so many words, most of them told before; the clue stands in the middle."""
    draw = random.Random(seed)
    told = [" ".join(draw.choices(STORY.split(), k=words)) for _ in range(15)]
    lines = [draw.choice(told) for _ in range(paragraphs)]
    lines[paragraphs // 2] = f"There was lamp oil on the sleeve of Otto {seed}."
    return lines


def write_novels(folder: Path) -> dict[str, str]:
    """A novel of 60,000 words, asked about twice, and three in one."""
    texts = {"1": novel(1), "2": [line for seed in (1, 2, 3) for line in novel(seed)]}
    annotations, novels = folder / "qa" / "human_anno", folder / "qa" / "novel_data_en"
    annotations.mkdir(parents=True)
    novels.mkdir()
    for name, lines in texts.items():
        (novels / f"{name}-The Lamp-Ida Moor.txt").write_text(
            "".join(f"[{number}] {line}\n" for number, line in enumerate(lines, 1)))
        asked = [{"question": question, "options": {"A": "Ida", "B": "Otto", "C": "Nell", "D": "Nobody"}, "answer": "B",
                  "reasoning": ["There was oil on his sleeve."], "clue_position": [1001],
                  "answer_position": len(lines) - 5, "distraction": {}}
                 for question in ("Whose sleeve had lamp oil?", "What lamp oil was on his sleeve?")[:3 - int(name)]]
        (annotations / f"{name}.json").write_text(json.dumps(
            [{"novel_id": int(name), "num_paragraphs": len(lines), "time_cost": 1, "questions": asked}]))
    return {"kind": "detectiveqa", "path": str(folder / "qa")}


@pytest.fixture
def read(serve):
    return serve(lambda body: "<Thinking>There was oil on his sleeve.</Thinking><Answer>B</Answer>")


def test_a_whole_novel_is_known_to_be_too_long_before_any_call(ragbed, town, read):
    path = town.config(read.url, benchmark=write_novels(town.folder), conditions="full",
                       calls={"context": LIMIT}, reasoning=["direct", "plan_and_solve"])
    status, _, err = ragbed("run", path)
    assert status == 1  # nothing was answered
    assert read.requests == []
    first, *_ = [line for line in err.splitlines() if "exceed the context" in line]
    assert err.index(first) < err.index('{"stage": "questions"')
    assert f"full: 3 of 3 questions exceed the context of {read.url}#m, 8192 tokens less 1024 for" in first
    assert "the largest have at least 179" in first
    assert "use conditions: retrieved" in first
    results = [record["result"] for record in town.records()]
    assert [result["outcome"] for result in results] == ["too_long"] * 6
    for result in results:
        said = result["failure"]["message"]
        assert int(said.split()[5]) > 59_000
        assert "context has 8192; nothing was sent" in said
        assert result["evidence"][0]["end"] > 200_000  # shown whole, not cut
    assert all(record["timing"]["attempts"] == 0 for record in town.records())


@pytest.mark.slow
def test_what_is_found_of_the_same_novels_is_answered(ragbed, town, read):
    path = town.config(read.url, benchmark=write_novels(town.folder), conditions=["full", "retrieved"],
                       calls={"context": LIMIT}, retriever={"k": 3})
    status, out, err = ragbed("run", path, "--json")
    assert status == 0
    outcomes = {cell["condition"]: cell["outcomes"] for cell in json.loads(out)["cells"]}
    assert (outcomes["full"]["too_long"], outcomes["retrieved"]["answered"]) == (3, 3)
    assert len(read.requests) == 3
    for body, _ in read.requests:
        prompt = body["messages"][1]["content"]
        assert "lamp oil on the sleeve" in prompt
        assert len(prompt) < 5_000
    assert err.count("exceed the context") == 1
    before = town.hashes()
    assert ragbed("run", path, "--journal", "replay")[0] == 0
    assert town.hashes() == before
    assert len(read.requests) == 3


def cut(text, prompt, cached=0):
    return is_prompt_cut((Message("user", (text,)),), Usage(prompt, 1, cached, 1))


@pytest.mark.parametrize(("text", "counted"), [
    ("word " * 11_000, 2_050), ("那天晚上没有人离开房子" * 2_000, 2_050), ("ไม่มีใครออกจากบ้าน" * 2_000, 2_050),
    ("서울은 대한민국의 수도이다 " * 2_000, 2_050), ("Ходил старый дом. " * 1_500, 4_096), ("a, b\n" * 3_000, 4_096)])
def test_a_server_that_counts_fewer_tokens_than_words_has_cut_the_prompt(text, counted):
    assert cut(text, counted)


@pytest.mark.parametrize(("text", "counted", "cached"), [
    ("word " * 11_000, 0, 0), ("word " * 11_000, 11_000, 0), ("word " * 11_000, 2_000, 9_500),
    ("那天晚上没有人离开房子" * 2_000, 2_750, 0), ("QUJD" * 20_000, 26_000, 0), ("3141592653" * 5_000, 17_000, 0),
    (" " * 90_000, 12, 0), ("x" + " " * 90_000 + "\n" * 500 + "y", 30, 0), ("." * 50_000, 800, 0),
    ("| --- " * 9_000, 90, 0), ("if(x){return[y];}" * 3_000, 9_000, 0), ("", 5, 0), ("Hi.", 9, 0)])
def test_dense_texts_cached_and_missing_counts_are_no_alarm(text, counted, cached):
    assert not cut(text, counted, cached)


@given(st.text(st.sampled_from("abc XYZ é1,.-_|\n\t那天晚上한국ไทย😀"), max_size=300))
def test_the_count_of_a_tokeniser_is_never_that_of_a_cut_prompt(tokenizer, text):
    tokenizer.no_truncation()
    assert not cut(text, len(tokenizer.encode(text, add_special_tokens=False).ids))


@pytest.mark.parametrize("usage", [
    {"prompt_tokens": 7, "completion_tokens": 2, "cache_read_input_tokens": 500},
    {"prompt_tokens": 7, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 500}}])
async def test_cached_tokens_that_are_no_part_of_the_count_are_added(serve, usage):
    async with open_model(f"{serve([{'text': 'a', 'usage': usage}]).url}#m", ModelSettings()) as model:
        done = await model.complete(Generate((Message("user", ("word " * 400,)),), "answer"), max_tokens=9)
    assert done.reply.usage == Usage(507, 2, 500, 1, None)


@pytest.mark.slow
def test_an_answer_to_a_prompt_that_was_cut_has_a_note_and_the_run_a_count(ragbed, serve, tmp_path):
    def script(body):
        long = len(body["messages"][-1]["content"].split()) > 60
        return {"text": "Paris [1]", "usage": {"prompt_tokens": 41 if long else 200, "completion_tokens": 3}}

    run = tmp_path / "runs" / "r"
    model = f"{serve(script).url}#m"
    status, out, _ = ragbed("run", "demo", "--name", "r", "--out", tmp_path / "runs", "--model", model,
                            "--reasoning", "direct", "--limit", "3")
    assert status == 0
    summary = json.loads((run / "summary.json").read_text())
    (said,) = summary["cut"]
    assert said.startswith("In 3 of ")
    assert said in summary["notes"]
    assert "the server counted fewer prompt tokens than the prompt has" in " ".join(out.split())
