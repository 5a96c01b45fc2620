"""`ragbed check strategy`."""
from __future__ import annotations

from typing import Annotated

import typer

from ragbed.experiments.commands.options import AsJson


def check_strategy(strategy: Annotated[str, typer.Argument(metavar="STRATEGY", help=(
        "A name, FILE.py:FUNCTION, or YAML such as '{kind: ...}'."))], json: AsJson = False) -> None:
    """Check a strategy against the rules that every strategy must follow.

    The strategy is executed many times with scripted replies, in separate processes. Exit status 1: a rule is broken.
    """
    from ragbed.experiments.guests.conformance.checking import PROMISES, check_strategy
    from ragbed.experiments.settings.texts import parse_spec
    from ragbed.experiments.terminal.display import print_json, print_table, say

    verdicts = check_strategy(parse_spec(strategy, "STRATEGY"))
    kept, words = all(verdict.passed for verdict in verdicts), {True: "kept", False: "BROKEN", None: "not tested"}
    if json:
        print_json({"strategy": strategy, "passed": kept, "promises": [
            {"name": one.name, "passed": one.passed, "promise": PROMISES[one.name], "detail": one.detail}
            for one in verdicts]})
    else:
        print_table(["promise", "", "what it says"], [[one.name, words[one.passed], PROMISES[one.name]]
                                                     for one in verdicts])
        for one in verdicts:
            if one.detail and (one.passed is False or one.name == "ends"):
                say(f"{one.name}: {one.detail}")
    if not kept:
        raise typer.Exit(1)
