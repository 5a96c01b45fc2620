"""The documentation as a site: it builds, has every page, in llms.txt too, and a broken link ends the build."""
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = {path.name for path in DOCS.glob("*.md")}


def named(entry):
    """The pages of an entry of the navigation."""
    if isinstance(entry, str):
        return [entry]
    return [page for one in (entry.values() if isinstance(entry, dict) else entry) for page in named(one)]


def build(folder):
    """The exit status of a strict build of the site in a folder, and what it says."""
    done = subprocess.run([str(Path(sys.executable).parent / "zensical"), "build", "--strict"], cwd=folder,
                          capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


@pytest.fixture
def copy(tmp_path):
    shutil.copy(ROOT / "zensical.toml", tmp_path)
    shutil.copytree(DOCS, tmp_path / "docs")
    return tmp_path


def test_the_navigation_has_every_page_once():
    shown = named(tomllib.loads((ROOT / "zensical.toml").read_text(encoding="utf-8"))["project"]["nav"])
    assert sorted(shown) == sorted(PAGES)


def test_llms_txt_has_the_form_of_its_specification_and_every_page_once():
    text = (DOCS / "llms.txt").read_text(encoding="utf-8")
    title, summary, *sections = re.split(r"\n\n(?=> |## )", text)
    assert re.fullmatch(r"# \w+", title)
    assert summary.startswith("> ")
    linked = []
    for section in sections:
        head, lines = section.split("\n\n", 1)
        assert head.startswith("## ")
        for line in lines.strip().splitlines():
            found = re.fullmatch(r"- \[[^\]]+\]\(([\w.-]+)\): \S.+", line)
            assert found, line
            linked.append(found[1])
    assert sorted(linked) == sorted({*PAGES, *(path.name for path in DOCS.glob("*.ipynb"))})


@pytest.mark.slow
def test_the_site_is_built_and_loads_nothing_from_elsewhere(copy):
    status, said = build(copy)
    assert (status, "No issues found" in said) == (0, True), said
    for page in PAGES:
        text = (copy / "site" / page).with_suffix(".html").read_text(encoding="utf-8")
        assert re.findall(r"<(?:script|link|img)[^>]+(?:src|href)=\"?(https?:[^\" >]+)", text) == []
    assert (copy / "site" / "llms.txt").is_file()


@pytest.mark.slow
def test_a_broken_link_ends_the_build(copy):
    with (copy / "docs" / "races.md").open("a", encoding="utf-8") as page:
        page.write("\n[a page](gone.md) and [an anchor](commands.md#gone)\n")
    status, said = build(copy)
    assert status != 0
    assert "page does not exist" in said
    assert "anchor does not exist" in said
