"""Tutorials are followed from top to bottom: files are written, commands run, and what the page shows is printed."""
from contextlib import closing

import pytest
from tutorials import PAGES, README, follow, renewed


def missing(shown, printed):
    """The first line that a page shows and that is not printed in its place, or the other way round.

    `...` stands for lines that are left out, and at the end of a line for the rest of it.
    """
    left, skip = list(printed), False
    for line in shown:
        if line == "...":
            skip = True
            continue
        begun = line.removesuffix("...")
        same = str.startswith if begun != line else str.__eq__
        while skip and left and not same(left[0], begun):
            left.pop(0)
        if not left or not same(left[0], begun):
            return line
        left.pop(0)
        skip = False
    return None if skip or not left else left[0]


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_shows_what_its_commands_print(page, tmp_path):
    with closing(follow(page, tmp_path)) as followed:
        for said, shown, printed in followed:
            if page == README:
                assert shown == renewed(page, shown, printed), f"{said}: run python bench/tutorials.py README.md"
            else:
                assert missing(shown, printed) is None, f"{said}: run python bench/tutorials.py docs/{page.name}"


def test_figures_of_a_page_are_renewed_in_their_places():
    shown = ["...", "what      score...", "...", "direct    0.30", "draft     0.40", "...", "2 of 2"]
    printed = ["1 of 2", "what      score  n", "direct    0.35", "draft     0.20", "", "direct    0.30", "3 of 3"]
    now = renewed(PAGES[1], shown, printed)
    assert now == ["...", "what      score...", "...", "direct    0.35", "draft     0.20", "...", "3 of 3"]
    assert missing(now, printed) is None
    table = ["what    n  p", "draft   9  0.30", "direct  9  0.25", "", "p is not corrected"]
    assert renewed(README, ["what    p", "direct  0.5"], table) == ["what    p", "direct  0.25"]
