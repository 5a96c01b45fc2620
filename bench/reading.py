"""What it takes to read runs of 15 cells: writing the report, looking through it in a browser, comparing two of them.

    python bench/reading.py --data FOLDER [--questions 1000] [--keep FOLDER] [--json]

FOLDER holds HotpotQA in the folder `hotpotqa`; without `--data`, the variable RAGBED_DATA names it. Two finished runs
of five strategies under three conditions are made first (`made_runs.py`), which is not timed. Timed are: writing the
report, in this process; from opening it in Chromium until its list is there, and until a filter has settled, first by
cause and then by a text, where Playwright and a Chromium are installed; and `ragbed compare A B` in a process of its
own.
"""
from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from made_runs import make_run

from ragbed.experiments.report.page import report_run
from ragbed.experiments.runs.finished import open_finished


def main() -> None:
    options = _options()
    found = options.data or os.environ.get("RAGBED_DATA")
    if found is None:
        sys.exit("name the folder of the raw data with --data or RAGBED_DATA")
    with tempfile.TemporaryDirectory() as made:
        out = options.keep or Path(made)
        files = sorted((Path(found) / "hotpotqa").glob("hotpot_*.json*"))
        if not files:
            sys.exit(f"{found} holds no hotpotqa/hotpot_*.json")
        runs = [make_run(name, out, files[0], options.questions, seed) for seed, name in enumerate(("first", "second"))]
        report = {"records": 15 * options.questions, **_written(runs[0]), **_read(runs[0] / "report.html"),
                  **_compared(runs)}
    print(json.dumps(report, indent=2) if options.json else _shown(report))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data")
    parser.add_argument("--questions", type=int, default=1000)
    parser.add_argument("--keep", type=Path, help="make the runs here and leave them")
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


def _written(run: Path) -> dict[str, Any]:
    processor = time.process_time()
    with open_finished(run) as finished:
        seconds = _seconds(lambda: report_run(finished))
    return {"report written, s": seconds, "of that, processor, s": round(time.process_time() - processor, 2),
            "report, MB": round((run / "report.html").stat().st_size / 1e6, 1)}


def _read(report: Path) -> dict[str, Any]:
    """None where there is no browser."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None or find_spec("playwright") is None:
        return dict.fromkeys(("list shown, s", "filtered by cause, s", "filtered by text, s"))
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page()

        def filtered(change: Callable[[], Any]) -> None:
            turn = page.locator("html").get_attribute("data-settled")
            change()
            page.wait_for_selector(f'html[data-settled]:not([data-settled="{turn}"])', state="attached")

        def shown() -> None:
            page.goto(report.resolve().as_uri())
            page.wait_for_selector("html[data-settled] #list .question", state="attached")

        def by_cause() -> None:
            filtered(lambda: page.select_option("[name=cause]", index=1))

        def by_text() -> None:
            filtered(lambda: page.fill("[name=text]", "Germany"))

        taken = {"list shown, s": _seconds(shown), "filtered by cause, s": _seconds(by_cause),
                 "filtered by text, s": _seconds(by_text)}
        browser.close()
    return taken


def _compared(runs: list[Path]) -> dict[str, Any]:
    command = [str(part) for part in (Path(sys.executable).with_name("ragbed"), "compare", *runs)]
    return {"two runs compared, s": _seconds(lambda: subprocess.run(command, check=True, capture_output=True))}


def _seconds(work: Callable[[], Any]) -> float:
    before = time.perf_counter()
    work()
    return round(time.perf_counter() - before, 2)


def _shown(report: dict[str, Any]) -> str:
    return "\n".join(f"{name:<24}{'no browser' if value is None else value:>12}" for name, value in report.items())


if __name__ == "__main__":
    main()
