"""JSON from outside: what is accepted, what is mended in replies, and what is refused in files."""
import math

import pytest
from each_case import each
from growth import grows_linearly

from ragbed.agents.replies import parse_object
from ragbed.documents.json import loads


@pytest.mark.parametrize(("text", "why"), [
    ('{"a": 1, "b": {"c": 1, "c": 2}}', "'c' is given twice"), ('["\\ud83d"]', "surrogates"), ("[", "Expecting"),
    ("[1, " + "[" * 200 + "]" * 201, "nested too deeply"), ("[" * 100_000, "nested too deeply"),
    (b"\xff", "decode")])
def test_what_nothing_could_store_or_walk_through_is_refused(text, why):
    with pytest.raises(ValueError, match=why):
        loads(text)


@pytest.mark.parametrize(("text", "value"), [
    ('["a\\ud83d"]', ["a\ufffd"]), ('{"a\\ude00": 1, "a\\ude00": 2}', {"a\ufffd": 2}),
    ('["\\ud83d\\ude00"]', ["\U0001f600"]), ("[" * 200 + "]" * 200, None)])
def test_what_a_model_says_is_mended(text, value):
    assert value is None or loads(text, mend=True) == value


def test_what_is_sound_is_as_it_is():
    assert loads(b'\xef\xbb\xbf{"a": ["\\ud83d\\ude00", 1.5]}') == {"a": ["\U0001f600", 1.5]}
    assert loads("[" * 200 + "1" + "]" * 200)
    assert loads('{"a": "' + "[" * 900 + '"}')["a"] == "[" * 900
    assert math.isnan(loads("NaN"))
    with pytest.raises(ValueError, match="NaN is not JSON"):
        loads('{"a": NaN}', mend=True)


FIELDS = {"properties": {"answer": {}, "refused": {}, "citations": {}}}
PARIS = '{"answer": "Paris", "refused": false, "citations": [1]}'
WHOLE = {"answer": "Paris", "refused": False, "citations": [1]}


@each("text", [
    PARIS, f"```json\n{PARIS}\n```", f"```\n{PARIS}\n```\nI hope this helps.", f"\ufeff{PARIS}", f" \n{PARIS}\n",
    f"<think>It is {{\"answer\": \"Rome\", \"refused\": false, \"citations\": []}}</think>\n{PARIS}",
    f"Use braces {{so}} and {{\"x\"}}. Here it is: {PARIS}. Done {{}}", f"<Answer>{PARIS}</Answer>", f"[{PARIS}]",
    f'{{"answer": "Rome", "refused": false, "citations": [2]}} No, wait: {PARIS}',
    f'{PARIS}\nThis follows {{"type": "object"}}', f'{PARIS} {{"answer": "Rome", "refu', f"{{{PARIS}}}",
    '```json\n{"answer": "Paris", "refused": False, "citations": [1,],}\n```', f'It\'s "{{" first. {PARIS}'])
def test_the_object_of_a_reply_is_found_among_other_text(text):
    assert parse_object(text, FIELDS) == WHOLE


@pytest.mark.parametrize(("text", "answer"), [
    ('{"score": NaN, "answer": "a"}', "a"), ('{"answer": "a\nb"}', "a\nb"),
    ('```\n{"answer": "a\tb", "x": -Infinity}\n```', "a\tb"),
    ('Sure: {"answer": "a {b} \\"c\\" }"}', 'a {b} "c" }'), ('Well {"reasoning": {"x": 1}, "answer": "a"}', "a"),
    ('Here: {"answer": "say None, True,]"}', "say None, True,]")])
def test_slips_of_models_within_an_object_are_mended(text, answer):
    found = parse_object(text, FIELDS)
    assert found is not None
    assert found["answer"] == answer


@each("text", [
    "", "Paris", "{", '{"answer": "Par', '{"reasoning": {"answer": "x"}, "answer": "Par', '["a"]', "{answer: Paris}",
    '<think>{"answer": "a"}', 'Note: {"other": 1}', 'Here: {"answer" "a"}'])
def test_a_reply_without_a_complete_object_of_the_schema_gives_none(text):
    assert parse_object(text, FIELDS) is None


@pytest.mark.slow
@pytest.mark.parametrize("piece", [
    "{", '{"', '{"a":', '{"a":{', "{}", '{"a": 1}', '"', '\\"', '{"\\"', "{ ", '{"a": "', "}", '{"a",', "[{", "{\n\n"])
def test_megabytes_of_braces_take_linear_time(piece):
    grows_linearly(lambda n: parse_object("x" + piece * (n // len(piece)), FIELDS), 100_000)
