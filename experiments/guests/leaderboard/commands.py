"""`ragbed leaderboard`: build a static page from cassettes, each replayed."""
from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ragbed.experiments.commands.options import AsJson, refuse

_SHOWN = 20  # refused submissions that the terminal shows


def leaderboard(folder: Annotated[Path, typer.Argument(help=(
                    "Folder with submissions (*.cassette.jsonl.gz), and leaderboard.yaml."))],
                out: Annotated[Path, typer.Option("--out", help="Folder of the page.")] = Path("site"),
                settings: Annotated[Path | None, typer.Option("--settings", metavar="FILE", help=(
                    "The owner's settings. Default: leaderboard.yaml in FOLDER."))] = None,
                title: Annotated[str, typer.Option("--title", help="Title of the page.")] = "Leaderboard",
                seconds: Annotated[int, typer.Option("--seconds", min=1, help=(
                    "Longest replay of one submission."))] = 300,
                json: AsJson = False) -> None:
    """Build a static leaderboard from cassettes, each replayed and computed again.

    leaderboard.yaml has the benchmark (or several), and how answers are scored, as in a settings file without models.
    Submissions may choose models, strategies and retrievers; everything else must be the same. No code that a
    submission names is loaded.

    Exit status 1: a submission was refused.
    """
    from ragbed.agents.cassette import ENDING
    from ragbed.experiments.guests.leaderboard.leaderboard_page import board_json, write_board
    from ragbed.experiments.guests.leaderboard.submission_checks import Reference, check_all
    from ragbed.experiments.settings.file import read_runs
    from ragbed.experiments.terminal.display import Bars, note, print_json, say

    own = settings or folder / "leaderboard.yaml"
    if not own.is_file():
        refuse(f"{own} does not exist; write the benchmark and the scoring of the leaderboard into it, as in "
               "benchmark: {kind: hotpotqa, path: data/hotpotqa}")
    references = [Reference.of(one) for one in read_runs(own)]
    paths = sorted(path for path in folder.glob(f"*{ENDING}") if path.is_file() and not path.is_symlink())
    if not paths:
        refuse(f"{folder} has no submission: no file that ends in {ENDING}")
    verdicts = []
    with Bars() as bars:
        for verdict in check_all(paths, references, seconds):
            verdicts.append(verdict)
            bars("replaying submissions", len(verdicts), len(paths))
    board = board_json(verdicts, references)
    path = write_board(board, out, title)
    refused = board["refused"]
    if json:
        print_json({"page": str(path), **board})
    else:
        for one in refused[:_SHOWN]:
            note(f"refused: {one['file']}: {one['reason']}")
        if len(refused) > _SHOWN:
            note(f"and {len(refused) - _SHOWN} more, on the page")
        say(f"{path}: {len(paths) - len(refused)} of {len(paths)} submissions accepted")
    if refused:
        raise typer.Exit(1)
