"""JSON from outside: what is accepted, what is mended in replies, and what is refused in files."""
import math

import pytest

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
