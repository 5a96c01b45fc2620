"""Prompts that cannot fit a model's context: known before any call, recorded with both sizes, nothing cut."""
from __future__ import annotations

import asyncio
import json
import random

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer

from agents.context import Context, least_tokens
from agents.models import open_model
from agents.settings import LocalSettings, ModelSettings
from documents.errors import CallTooLong
from experiments.question import Benchmark, Question
from experiments.runner import Watch, run
from experiments.settings_file import check_settings
from retrieval.models import MINILM, find_model
from strategies.types import Generate, Message

WORDS = ("the detective looked at a lamp and said that night nobody had left the house before rain came over "
         "hills while old clock in corner struck twelve").split()
LIMIT = 8192


@pytest.mark.parametrize(("text", "least"), [
    ("", 0), ("Oslo is the capital.", 4), ("a-b (c) -- ... | | |", 2), ("  spaced   out  ", 2),
    ("x" * 10_000, 1), ("=" * 500, 0), ("3.5 million, or 1,000", 4), ("那天晚上没有人离开房子。" * 4, 5),
    ("서울은 대한민국의 수도이다.", 3), ("GPT 那天晚上没有人离开", 2)])
def test_the_least_number_of_tokens_counts_words_and_characters_of_scripts_without_spaces(text, least):
    assert least_tokens(text) == least


@pytest.fixture(scope="module")
def tokenizer():
    return Tokenizer.from_file(str(find_model(MINILM).path / "tokenizer.json"))


@given(st.text(st.sampled_from("abc XYZ é1,.-_|\n\t那天晚上한국ไทย😀"), max_size=300))
def test_a_tokeniser_never_finds_fewer(tokenizer, text):
    tokenizer.no_truncation()
    assert least_tokens(text) <= len(tokenizer.encode(text, add_special_tokens=False).ids)
    assert least_tokens(text) <= len(text) // 2 + 1


def test_what_leaves_no_room_for_the_reply_does_not_fit_where_the_server_insists():
    messages = [Message("user", ("word " * 200,))]
    Context(300).check(messages, 100)
    with pytest.raises(CallTooLong, match=r"at least 200 tokens and 101 for the reply, .* holds 300; nothing was sent"):
        Context(300).check(messages, 101)
    Context(201, whole_reply=False).check(messages, 5000)
    with pytest.raises(CallTooLong, match="at least 200 tokens, .* holds 200"):
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
