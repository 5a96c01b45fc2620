"""The help pages of all commands: short first pages, one line per option, the rest behind --help-all."""
import pytest

from ragbed.experiments.cli import FIRST, build_app
from ragbed.experiments.commands.help import command_page, leaves

COMMANDS = dict(leaves(build_app(), None))


class Named:
    """What a help page asks of a context."""

    def __init__(self, words):
        self.command_path, self.help_option_names = " ".join(("ragbed", *words)), ["--help"]


def lines_of(page, begin="  "):
    rows = page.partition("\nArguments:\n")[2] or page.partition("\nOptions:\n")[2]
    return [line for line in rows.splitlines() if line.startswith(begin)]


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_a_help_page_has_few_options_and_one_line_for_each(words, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    first, whole = (command_page(COMMANDS[words], Named(words), everything) for everything in (False, True))
    assert len(lines_of(first, "  -")) <= 15
    assert [line for page in (first, whole) for line in lines_of(page) if line.startswith("   ")] == []
    assert ("--help-all" in first) == ("\nMore options:\n" in whole)


def test_the_first_page_lists_twelve_commands_and_help_all_lists_every_command(ragbed, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    status, out, _ = ragbed("--help")
    assert (status, [line.split()[0] for line in lines_of(f"\nOptions:\n{out.partition('Commands:')[2]}")][:12]) == (
        0, list(FIRST))
    assert all(len(line) <= 80 for line in out.splitlines() if line.startswith("  "))
    every = ragbed("help", "all")[1]
    assert {words[0] for words in COMMANDS} == {line.split()[0] for line in every.splitlines()
                                               if line.startswith("  ") and line[2] != " "}
    assert ragbed("help", "run")[1] == ragbed("run", "--help")[1]
    assert "More options:" in ragbed("run", "--help-all")[1]
