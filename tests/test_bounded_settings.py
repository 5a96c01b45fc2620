"""Settings of strategies are limited to what a run can ask, and names to what a table can show."""
import pytest

from ragbed.documents import SettingsError
from ragbed.strategies import parse_strategy, sweep


@pytest.mark.parametrize("name", ["\x1b[2J\nevil", "a\nb", "\ud800", "\u202eevil", " ", "\t", "x" * 81])
def test_a_name_that_a_table_cannot_show_is_refused(name):
    with pytest.raises(SettingsError, match="a name must be one line of at most 80 printable characters") as refused:
        parse_strategy("reasoning", {"kind": "direct", "name": name})
    assert str(refused.value).isprintable()


def test_a_sweep_that_is_too_large_is_refused_before_it_is_expanded():
    said = {"kind": "self_consistency", "samples": list(range(1, 101)), "temperature": [0.5] * 200,
            "threshold": [0.1] * 99}
    with pytest.raises(SettingsError, match="its lists expand to 1,980,000 strategies, but a run takes at most 1,000"):
        next(sweep("reasoning", said))
    assert len(list(sweep("reasoning", {"kind": "self_consistency", "samples": list(range(1, 101))}))) == 100
    with pytest.raises(SettingsError, match="self_consistency: samples: the list is empty"):
        list(sweep("reasoning", {"kind": "self_consistency", "samples": []}))


def test_samples_of_samples_are_counted_before_any_is_drawn():
    def nested(*samples):
        said = "chain_of_thought"
        for one in samples:
            said = {"kind": "self_consistency", "of": said, **({"samples": one} if one else {})}
        return said

    with pytest.raises(SettingsError, match="draw 10,000 samples per question; the maximum is 1,000"):
        parse_strategy("reasoning", nested(100, 100))
    with pytest.raises(SettingsError, match="draw 3,125 samples"):
        parse_strategy("reasoning", nested(None, None, None, None, None))
    around = parse_strategy("reasoning", {"kind": "supported", "of": nested(100, 10)})
    assert around.samples == 1_000
