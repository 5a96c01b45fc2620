"""`ragbed compare`."""
from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from experiments.commands.options import AsJson


def compare(first: Annotated[Path, typer.Argument(metavar="A", help="A finished run's folder: the baseline.")],
            second: Annotated[Path | None, typer.Argument(
                metavar="B", help="Another run's, whose cells are compared with A's. Without, those cells of A "
                                    "are compared that differ in one factor, as in its summary and report.")] = None,
            metric: Annotated[list[str] | None, typer.Option(
                "--metric", help="See `ragbed list metrics`; may be given again. By default the first of the run's "
                                 "table.")] = None,
            cell: Annotated[list[str] | None, typer.Option(
                "--cell", help="Only cells of this name: what a row is called, its id, or parts of it such as "
                               "`direct` or `repeat 0`; may be given again.")] = None,
            baseline: Annotated[str | None, typer.Option(
                "--baseline", help="The cell of A that all are compared with, named as for --cell; in one run with "
                                   "--cell or --fail-if the first of them by default.")] = None,
            fail_if: Annotated[list[str] | None, typer.Option(
                "--fail-if", metavar="EXPR", help="Exit status 1 where it holds of any cell, such as 'unified < "
                                                  "baseline - 0.02' of the means, which chance alone may bring about; "
                                                  "'unified.high < baseline - 0.02' where the 95 % interval of the "
                                                  "difference is wholly below; 'unified.low < baseline - 0.02' where "
                                                  "it does not rule such a loss out. May be given again.")] = None,
            shared: Annotated[bool, typer.Option(
                "--shared", help="Check --fail-if over the questions that both runs have. Without, it is refused where "
                                 "one of them has others.")] = False,
            flips: Annotated[bool, typer.Option("--flips", help="List the questions whose score differs.")] = False,
            steps: Annotated[bool, typer.Option("--steps", help="Show at which step the two answers to each question "
                                                                "part, as a histogram.")] = False,
            junit: Annotated[Path | None, typer.Option(help="Write the conditions of --fail-if to this file as JUnit's "
                                                            "tests.")] = None,
            json: AsJson = False) -> None:
    """Compare two runs, or the cells of one, question by question: which differences are real."""
    from experiments.terminal.comparing import Wanted, show_comparisons

    wanted = Wanted(metric or [], cell or [], baseline, fail_if or [], shared, flips, steps, junit)
    show_comparisons((first, second), wanted, json)
