"""A run's results as other tools read them: each file has the form that the tool's own schema or reader accepts."""
import hashlib
import json
import re
import xml.etree.ElementTree as ET

import pyarrow.parquet as pq
import pymupdf
import pytest
import yaml
from markdown_it import MarkdownIt

from ragbed import open_run
from ragbed.experiments.guests.run_comparison.compare import compare_runs
from ragbed.experiments.guests.run_comparison.compared_run import read_compared_run

NAME = "a_b & <b>50 %</b> | $x$"


@pytest.fixture
def run(town, serve, ragbed):
    """A finished run of two cells, one of which has a name that every format has to escape."""
    path = town.config(serve(town.reply).url, reasoning=["direct", {"kind": "least_to_most", "name": NAME}])
    status, _, err = ragbed("run", path)
    assert status == 0, err
    return town.run


def written(ragbed, run, form, path):
    assert ragbed("export", run, path, "--as", form)[0] == 0
    ragbed.refuses("export", run, path, "--as", form, says=[f"{path} exists; name another"])
    return path


def test_every_eval_ever_has_a_file_of_figures_and_one_of_answers_for_each_cell(run, ragbed, tmp_path):
    folder = written(ragbed, run, "every_eval_ever", tmp_path / "eee")
    files = sorted(folder.glob("data/town/unknown/m/*.json"))
    assert len(files) == 2
    summary = json.loads((run / "summary.json").read_text())
    means = {cell["id"]: cell["metrics"]["unified"]["mean"] for cell in summary["cells"]}
    for file in files:
        content = json.loads(file.read_text())
        assert content["schema_version"] == "0.3.0"
        assert content["model_info"]["id"] == "unknown/m"  # no address
        figures = {one["evaluation_name"]: one for one in content["evaluation_results"]}
        cell = content["evaluation_id"].rpartition("/")[2]
        assert figures["town unified"]["score_details"]["score"] == means[cell]
        lower = {name: one["metric_config"]["lower_is_better"] for name, one in figures.items()}
        assert (lower["town right"], lower["town wrong"]) == (False, True)
        detailed = content["detailed_evaluation_results"]
        samples = (folder / detailed["file_path"]).read_bytes()
        assert hashlib.sha256(samples).hexdigest() == detailed["checksum"]
        lines = [json.loads(line) for line in samples.splitlines()]
        assert len(lines) == detailed["total_rows"]
        assert {line["evaluation_id"] for line in lines} == {content["evaluation_id"]}
        right = {line["sample_id"] for line in lines if line["evaluation"]["is_correct"]}
        assert right == {"non_refusal-5"}
        assert re.fullmatch(r"data/town/unknown/m/[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"
                            r"_samples\.jsonl", detailed["file_path"])


def test_langfuse_gets_items_traces_and_scores_of_these_traces(run, ragbed, tmp_path):
    content = json.loads(written(ragbed, run, "langfuse", tmp_path / "langfuse.json").read_text())
    assert len(content["items"]) == 6
    assert {one["datasetName"] for one in content["items"]} == {content["dataset"]["name"]} == {"town"}
    assert ["222 people"] in [one["expectedOutput"] for one in content["items"]]
    ids = {one["id"] for one in content["traces"]}
    assert len(ids) == len(content["traces"]) == 12
    assert all(re.fullmatch("[0-9a-f]{32}", id) for id in ids)
    assert {one["traceId"] for one in content["scores"]} == ids
    assert len({one["id"] for one in content["scores"]}) == len(content["scores"])
    assert {one["dataType"] for one in content["scores"] if one["name"] == "right"} == {"BOOLEAN"}


def test_a_data_set_has_a_card_and_a_row_for_each_answer(run, ragbed, tmp_path):
    folder = written(ragbed, run, "hf_dataset", tmp_path / "set")
    _, head, text = (folder / "README.md").read_text().split("---\n", 2)
    files, = yaml.safe_load(head)["configs"][0]["data_files"]
    rows, = folder.glob(files["path"])
    assert pq.read_table(rows).num_rows == 12
    assert "| cell | n |" in text


def test_latex_escapes_what_would_end_or_run_the_table(run, ragbed, tmp_path):
    text = written(ragbed, run, "latex", tmp_path / "table.tex").read_text()
    assert r"a\_b \& \textless{}b\textgreater{}50 \%\textless{}/b\textgreater{} | \$x\$ &" in text
    body = text.partition("\\midrule\n")[2].partition("\\bottomrule")[0].splitlines()
    columns = len(re.search(r"\{tabular\}\{(l?r*)\}", text)[1])
    assert [len(re.findall(r"(?<!\\)&", line)) + 1 for line in body] == [columns] * 2
    assert all(line.endswith(r" \\") for line in body)
    assert text.count("{") == text.count("}")


def test_markdown_is_one_table_of_plain_text(run, ragbed, tmp_path):
    text = written(ragbed, run, "markdown", tmp_path / "table.md").read_text()
    tokens = MarkdownIt("commonmark").enable("table").parse(text)
    cells = [token.children for token in tokens if token.type == "inline"]
    assert {child.type for children in cells for child in children} <= {"text", "strong_open", "strong_close",
                                                                        "text_special"}
    assert any("".join(child.content for child in children) == NAME for children in cells)


def test_a_picture_shows_every_cell_as_svg_and_png(run, ragbed, tmp_path):
    for _ in range(2):  # an earlier picture is replaced
        assert ragbed("plot", run, "--out", tmp_path / "scores.svg")[0] == 0
    texts = [one.text for one in ET.fromstring((tmp_path / "scores.svg").read_text()).iter() if one.text]
    assert NAME in texts
    assert "town: unified score (lexical)" in texts
    assert ragbed("plot", run, "--out", tmp_path / "scores.png")[0] == 0
    picture = pymupdf.Pixmap(str(tmp_path / "scores.png"))
    assert picture.width > 2 * picture.height > 400
    assert len({picture.pixel(x, y) for x in range(0, picture.width, 3) for y in range(0, picture.height, 3)}) > 20
    ragbed.refuses("plot", run, "--out", tmp_path / "scores.pdf", says=["unknown ending; use .svg or .png"])
    (tmp_path / "mine.png").write_text("mine")
    ragbed.refuses("plot", run, "--out", tmp_path / "mine.png", says=["is not an earlier export"])
    ragbed.refuses("export", run, tmp_path / "x", "--as", "latx", says=["did you mean 'latex'?"])
    for form, why in (("nope", "is unknown"), ("promptfoo", "can only be read")):
        ragbed.refuses("export", run, tmp_path / "x", "--as", form, says=[
            f"the format '{form}' {why}; the formats are langfuse, latex, markdown, every_eval_ever, hf_dataset, "
            "trec_rag, inspect, ragas, ragchecker, jsonl"])


def test_a_notebook_shows_runs_tables_and_comparisons_as_escaped_html(run):
    with open_run(run) as opened:
        shown = [opened._repr_html_(), next(iter(opened.views.values()))._repr_html_(),
                 compare_runs(read_compared_run(run), None)._repr_html_()]
    for html in shown:
        assert ET.fromstring(f"<div>{html}</div>").find("table") is not None
        assert "<script" not in html
        assert "<b>" not in html
        assert len(html) < 20_000
    assert "a_b &amp; &lt;b&gt;50 %&lt;/b&gt; | $x$" in shown[0]
