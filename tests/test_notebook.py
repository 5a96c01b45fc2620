"""The notebook of docs/ runs as it stands, and prints what it shows."""
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

NOTEBOOK = Path(__file__).parent.parent / "docs" / "open-a-run.ipynb"


def shown(notebook):
    """What the cells of a notebook print and show as text, but for objects that are shown as HTML alone."""
    texts = [output.get("text") or output["data"]["text/plain"] for cell in notebook.cells if cell.cell_type == "code"
             for output in cell.outputs]
    return [text for text in texts if not text.startswith("<pandas")]


@pytest.mark.slow
@pytest.mark.filterwarnings("default")  # the kernel is another process, and its client not ours
def test_the_notebook_prints_what_it_shows(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(NOTEBOOK.parent.parent))
    stored = nbformat.read(NOTEBOOK, as_version=4)
    done = nbformat.read(NOTEBOOK, as_version=4)
    NotebookClient(done, timeout=600, kernel_name="python3").execute()
    assert shown(done) == shown(stored)
    assert len(shown(stored)) > 5
