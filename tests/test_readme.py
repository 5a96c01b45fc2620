"""What the README and the pages in docs/ say is what there is."""
import ast
import re
from pathlib import Path

import pytest
import settings_page
import yaml
from commands import page

from ragbed.experiments import check_settings
from ragbed.experiments.cli import build_app
from ragbed.experiments.settings.matrix import list_combinations

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
PAGES = [README, *sorted((ROOT / "docs").glob("*.md"))]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def blocks(path, language):
    """The fenced blocks of a page in one language."""
    return [text for kind, text in FENCE.findall(path.read_text(encoding="utf-8")) if kind == language]


def settings_of(path):
    """The settings of the runs that a page shows, each with its first line."""
    shown = [(text.splitlines()[0], yaml.safe_load(text)) for text in blocks(path, "yaml")]
    return [(first, content) for first, content in shown if {"models", "reasoning"} & set(content)
            and "benchmark" in content]


def anchors(path):
    """What a link to a heading of the page may say."""
    heads = re.findall(r"^#+ (.+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


def test_the_readme_is_short():
    assert len(README.read_text(encoding="utf-8").splitlines()) <= 150


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_links_between_pages_lead_somewhere(path):
    text = FENCE.sub("", path.read_text(encoding="utf-8"))
    for link in re.findall(r"\]\((?!http)([^)]+)\)|src=\"([^\"]+)\"", text):
        place, _, anchor = "".join(link).partition("#")
        target = path.parent / place if place else path
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


def test_every_page_is_linked_from_the_readme_or_a_page_of_it():
    linked = {name for path in PAGES for name in re.findall(r"[(/](\w[\w-]*\.md)", path.read_text(encoding="utf-8"))}
    assert {path.name for path in PAGES[1:]} <= linked


@pytest.mark.parametrize(("path", "first", "content"), [
    pytest.param(path, *shown, id=f"{path.name}: {shown[0]}") for path in PAGES for shown in settings_of(path)])
def test_settings_that_are_shown_are_valid(path, first, content, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my_strategy.py").write_text(
        "from ragbed.strategies.reasoning.direct import direct\n"
        "def recipe(task):\n    return (yield from direct(task))\n")
    (tmp_path / "ours.py").write_text("def answer(question):\n    return question\n")
    (tmp_path / "look_twice.py").write_text((tmp_path / "my_strategy.py").read_text())
    assert check_settings({"name": "shown", **content}, path.name).reasoning


def test_the_example_of_a_matrix_leaves_out_and_brings_in():
    (content,) = (content for first, content in settings_of(ROOT / "docs" / "experiments.md") if "matrix" in first)
    made = list_combinations(check_settings({"name": "matrix", **content}, "experiments.md"))
    assert len(made) == 2 * (5 * 3 - 1) * 2 * 2 + 2


def test_the_page_of_commands_is_what_their_help_says():
    assert (ROOT / "docs" / "commands.md").read_text(encoding="utf-8") == page(), "run: make docs"


def test_the_page_of_settings_is_what_their_schema_says():
    assert (ROOT / "docs" / "settings.md").read_text(encoding="utf-8") == settings_page.page(), "run: make docs"


def test_commands_that_are_shown_exist():
    names = {*build_app().targets, "help"}
    shown = {name for path in PAGES for name in re.findall(r"^\$ .*?ragbed ([a-z][\w-]+)|`ragbed ([a-z][\w-]+)",
                                                            path.read_text(encoding="utf-8"), re.MULTILINE)}
    assert {"".join(name) for name in shown} <= names


def test_every_folder_of_the_tree_exists():
    tree = next(text for text in blocks(README, "") if "documents/" in text)
    assert all((ROOT / line.split()[0]).is_dir() for line in tree.splitlines())
    assert set(re.findall(r" (\w+)/(?=[ ,])", tree)) <= {path.name for path in ROOT.glob("*/*")}


def test_every_file_that_the_architecture_names_exists():
    named = re.findall(r"`((?:documents|retrieval|strategies|agents|experiments|tests)/[\w/.]*)`",
                       (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8"))
    assert len(named) > 30
    assert [name for name in named if not (ROOT / name).exists()] == []


def test_rooms_of_experiments_import_only_from_those_that_the_architecture_names_before_them():
    order = [line.split()[0] for text in blocks(ROOT / "docs" / "architecture.md", "") if text.startswith("conditions ")
             for line in text.splitlines()]
    for path in (ROOT / "experiments").rglob("*.py"):
        room = path.relative_to(ROOT / "experiments").with_suffix("").parts[0]
        used = re.findall(r"^ *from ragbed\.experiments\.(\w+)", path.read_text(encoding="utf-8"), re.MULTILINE)
        if room != "__init__":
            assert not set(used) - set(order[:order.index(room) + 1]), path


def test_python_that_is_shown_compiles():
    for path in PAGES:
        for text in blocks(path, "python"):
            compile(text, path.name, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)


def test_the_scripted_test_that_the_readme_shows_passes(tmp_path, monkeypatch):
    template = ROOT / "experiments" / "data" / "templates" / "reasoning.py.txt"
    (tmp_path / "look_twice.py").write_text(template.read_text(encoding="utf-8"))
    monkeypatch.syspath_prepend(tmp_path)
    shown, = (text for text in blocks(README, "python") if "Scripted" in text)
    names = {}
    exec(shown, names)
    names["test_it_searches_for_what_is_missing"]()


def test_the_python_of_the_page_of_retrieval_runs_as_it_stands(tmp_path, monkeypatch, capsys):
    (code,) = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "retrieval.md").read_text(), re.DOTALL)
    assert len(code.strip().splitlines()) <= 14
    monkeypatch.chdir(tmp_path)
    (tmp_path / "reports").mkdir()
    for name, year, text in [("terms", 2024, "The warranty of the pump lasts 24 months."),
                             ("old", 2019, "The warranty lasts 12 months."), ("ferry", 2023, "The ferry is closed.")]:
        (tmp_path / "reports" / f"{name}.md").write_text(f"---\nyear: {year}\n---\n{text}\n")
    (tmp_path / "questions.jsonl").write_text(
        '{"question": "How long does the warranty of the pump last?", "gold_documents": [{"document": "terms.md"}]}\n')
    found = {}
    exec(compile(code, "retrieval.md", "exec"), found)
    assert [found["index"].source_of(hit.chunk.document) for hit in found["hits"]] == ["terms.md", "ferry.md"]
    assert found["fused"][0].found_by == "fused(dense 1, bm25 1)"
    said = capsys.readouterr().out
    assert "24 months" in said
    assert re.findall(r"(\w+)@10 +(\S+)", said) == [("bm25", "1.0"), ("dense", "1.0"), ("fused", "1.0")]
