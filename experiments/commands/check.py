"""`ragbed check`."""
from __future__ import annotations

from typing import Annotated

import typer

from experiments.commands.options import AsJson


def strategy(strategy: Annotated[str, typer.Argument(metavar="STRATEGY", help="FILE.py:FUNCTION, a name of `ragbed "
                                                     "list strategies`, or settings in YAML, as in '{kind: "
                                                     "FILE.py:FUNCTION, laps: 3}'.")],
             json: AsJson = False) -> None:
    """Put a strategy to the test: it is played with many replies, in processes of its own, which execute its code.
    Exit status 1: it breaks a promise."""
    from agents.conformance import PROMISES, check
    from experiments.settings.file import said
    from experiments.terminal.display import print_json, print_table, say

    verdicts = check(said(strategy, "STRATEGY"))
    kept, words = all(verdict.passed for verdict in verdicts), {True: "kept", False: "BROKEN", None: "not seen"}
    if json:
        print_json({"strategy": strategy, "passed": kept, "promises": [
            {"name": one.name, "passed": one.passed, "promise": PROMISES[one.name], "detail": one.detail}
            for one in verdicts]})
    else:
        print_table(["promise", "", "it says that"], [[one.name, words[one.passed], PROMISES[one.name]]
                                                     for one in verdicts])
        for one in verdicts:
            if one.detail and (one.passed is False or one.name == "ends"):
                say(f"{one.name}: {one.detail}")
    if not kept:
        raise typer.Exit(1)
