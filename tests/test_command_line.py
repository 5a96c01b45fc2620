"""What the command line itself refuses, before any command is at work."""
import os
import subprocess
import sys

import pytest


@pytest.mark.parametrize(("args", "says"), [
    (["run", "--limit", "x"], ["--limit", "integer", "`ragbed run --help`"]),
    (["run", "--nope"], ["No such option: --nope"]), (["rescore", "r", "--scoring", "x"], ["'as-published'"]),
    (["compare"], ["Missing argument 'A'"]), (["models", "nope"], ["'nope'", "`ragbed models --help`"]),
    (["guess\x1b[31m"], ["'guess\\x1b[31m'"]), (["search", "a", "b", "--index", "i"], ["unexpected extra argument"]),
    (["compare", "r", "--baseline", ""], ["--baseline has an empty value"]),
    (["effects", "r", "--metric="], ["--metric has an empty value"]), (["rescore", "r", "--judge", ""], ["--judge"]),
    (["compare", "r", "--junit", ""], ["--junit has an empty value"]), (["list"], ["Missing argument"])])
def test_words_that_no_command_knows_and_options_without_a_value_are_one_line(ragbed, args, says):
    ragbed.refuses(*args, says=says)


def test_without_a_command_the_help_is_shown(ragbed):
    status, out, err = ragbed()
    assert (status, err) == (2, "")
    assert "Usage: ragbed" in out
    assert "Examples:" in out
    assert "Start:" in ragbed("help", "all")[1]


@pytest.mark.parametrize(("place", "status", "said"), [
    ("/dev/full", 2, "ragbed: cannot write: No space left on device; free space, or write elsewhere, and repeat "
                     "the command\n"),
    (None, 0, "")])
def test_a_full_device_is_one_line_and_a_closed_output_is_none(tmp_path, place, status, said):
    with open(place or os.devnull, "wb") as out:
        done = subprocess.run([sys.executable, "-m", "ragbed", "list", "conditions"], stdout=out, cwd=tmp_path,
                              stderr=subprocess.PIPE, text=True, preexec_fn=None if place else lambda: os.close(1),
                              env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))})
    assert (done.returncode, done.stderr) == (status, said)
