"""Strategies of the guest are named in settings like those of the core, and imported when they are named."""
import subprocess
import sys

import pytest

from ragbed.documents import SettingsError
from ragbed.strategies import REASONING, RETRIEVAL, parse_strategy, template

SCRIPT = """
import sys
from ragbed.strategies import REASONING, parse_strategy
def guest(): return sorted(name for name in sys.modules if "more_strategies.reasoning." in name)
before = "ircot" in REASONING, list(REASONING)[-1], guest()
parse_strategy("reasoning", "ircot")
print(*before, guest())
"""


def test_a_strategy_is_imported_when_settings_name_it():
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True)
    assert done.stdout == "True supported [] ['ragbed.experiments.guests.more_strategies.reasoning.ircot']\n"


def test_a_mistyped_name_lists_every_strategy():
    with pytest.raises(SettingsError, match=r"unknown reasoning strategy 'self_sak'.*direct.*self_ask.*supported"):
        parse_strategy("reasoning", "self_sak")
    with pytest.raises(SettingsError, match=r"unknown retrieval strategy 'hide'.*once.*hyde"):
        parse_strategy("retrieval", "hide")


def test_the_catalogue_counts_strategies_of_core_and_guest():
    assert (len(REASONING), len(RETRIEVAL)) == (22, 9)
    assert len(list(REASONING)) == 22
    assert "self_sak" not in REASONING
    assert REASONING.get("self_sak") is None


def test_prompts_of_core_and_guest_are_found_by_name():
    assert template("hyde").startswith("Write")
    with pytest.raises(KeyError, match="there is no prompt hide"):
        template("hide")
