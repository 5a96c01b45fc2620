"""Take the screenshot of a run's report that the README shows, with an installed Chromium.

    python bench/report_picture.py runs/pools --section dose [--out docs/report.png] [--height 900]
"""
from __future__ import annotations

import argparse
import shutil
from pathlib import Path

from playwright.sync_api import sync_playwright


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("run", type=Path)
    parser.add_argument("--out", type=Path, default=Path("docs/report.png"))
    parser.add_argument("--section", default="summary", help="section at the top of the picture")
    parser.add_argument("--height", type=int, default=900)
    options = parser.parse_args()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": options.height})
        page.set_default_timeout(600_000)  # milliseconds: a busy machine takes its time
        page.goto((options.run / "report.html").resolve().as_uri() + f"#{options.section}")
        page.wait_for_selector("html[data-settled]", state="attached")
        page.screenshot(path=options.out)
        browser.close()


if __name__ == "__main__":
    main()
