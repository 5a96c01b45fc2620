"""The chunking evaluation: gold by the character, a run over chunkers and retrievers, and files that do not fit."""
import json
import shutil
from pathlib import Path

import pytest

from ragbed.documents import BenchmarkError, Fixed
from ragbed.experiments.guests.datasets.chunking_eval import ChunkingEval

DATA = Path(__file__).parents[2] / "data" / "chunking_eval"


def test_gold_is_spans_of_the_corpus_as_it_stands_in_code_points():
    benchmark = ChunkingEval(path=str(DATA)).load()
    texts = [[benchmark.documents[gold.document].plain[gold.start:gold.end] for gold in question.gold]
             for question in benchmark.questions]
    assert texts == [["grows by two centimetres a year", "Divers measure it each May."],
                     ["The oldest bell was cast in 1811."], ["hangs from an oak beam"]]
    assert benchmark.documents["esk"].plain == (DATA / "corpora" / "esk.md").read_text()
    assert benchmark.questions[0].tags == {"corpus": ("esk",)}
    cut = ChunkingEval(path=str(DATA), chunker=Fixed(size=100)).load().shared
    assert [len(chunk.content) for chunk in cut] == [100, 100, 6, 100, 73]


@pytest.mark.slow
def test_chunkers_and_retrievers_are_compared_without_a_model(ragbed, tmp_path):
    settings = {"name": "cut", "out": str(tmp_path), "benchmark": {"kind": "chunking_eval", "path": str(DATA)},
                "chunkers": [{"kind": "fixed", "size": 60}, {"kind": "sentences", "size": 60}],
                "retriever": [{"kind": "bm25", "k": 5}, {"kind": "dense", "k": 5}]}
    (tmp_path / "run.yaml").write_text(json.dumps(settings))
    status, _, err = ragbed("run", tmp_path / "run.yaml")
    assert status == 0, err
    summary = json.loads((tmp_path / "cut" / "summary.json").read_text())
    assert [cell["outcomes"]["searched"] for cell in summary["cells"]] == [3] * 4
    assert summary["columns"][:3] == ["char_recall@5", "char_precision@5", "char_iou@5"]
    for cell in summary["cells"]:
        means = {name: one["mean"] for name, one in cell["metrics"].items()}
        assert 0 < means["char_iou@5"] <= means["char_precision@5"] < means["char_recall@5"] <= 1
        assert cell["usage"]["calls"] == 0
    assert summary["comparisons"]["metric"] == "char_recall@5"
    for command in ("verify", "compare", "report"):
        status, _, err = ragbed(command, tmp_path / "cut")
        assert status == 0, err


@pytest.mark.parametrize(("old", "new", "complaint"), [
    (",lund\n", ",bath\n", "field corpus_id: expected one of the corpora in the folder: esk, lund, found 'bath'"),
    ('"": 57', '"": 58', "line 3, field references[0].content: expected the text of lund.md from 58 to 90, found"),
    ('"": 57', '"": -57', "line 3, field references[0].content: expected the text of lund.md from -57 to 90, found"),
    ('"": 57', '"": ""57""', "line 3, field references[0].start_index: expected a whole number, found '57'"),
    ("beam\"\"", "beam", "line 4, field references: expected JSON text of a list"),
    (",lund\n", "\n", "line 3: expected 3 fields, found 2"),
    ("question,", "question,question,", "line 1: expected unique column names, but two columns are called"),
    ('171}]"', "171}]", "line 4: cannot be read as CSV: unexpected end of data"),
])
def test_a_row_that_does_not_fit_is_one_line(tmp_path, old, new, complaint):
    shutil.copytree(DATA, tmp_path / "d")
    file = tmp_path / "d" / "questions_df.csv"
    file.write_text(file.read_text().replace(old, new, 1))
    with pytest.raises(BenchmarkError) as refused:
        ChunkingEval(path=str(tmp_path / "d")).load()
    assert complaint in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_folder_without_its_parts_is_refused(tmp_path):
    with pytest.raises(BenchmarkError, match=r"corpora: no such file or folder"):
        ChunkingEval(path=str(tmp_path)).load()
