"""The commands over an index: their JSON contracts, traces, and what hostile or bad input does to them."""
import json
import os
import subprocess
import sys
from pathlib import Path

import pymupdf
import pytest

from ragbed.retrieval import build_index
from ragbed.strategies import HISTORY, REASONING, REFUSAL, RETRIEVAL, template

PLACE = {"chunk", "document", "format", "pages", "start", "end", "text"}
STEERING = "\x1b]0;owned\x07 \x1b[2J \x9b31m \u202etxt.exe"


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cli")
    (folder / "oslo.md").write_text("# Oslo\n\nOslo is the capital of Norway. [bold]:smile:[/bold]\n")
    (folder / "bread.html").write_text(f"<h1>Bread</h1><p>Flour and water. {STEERING} Forged &#27;[31m too.</p>")
    with pymupdf.open() as pdf:
        for text in ("Nothing here.", "The ferry to Bergen leaves at noon."):
            pdf.new_page().insert_text((72, 72), text)
        pdf.save(folder / "ferry.pdf")
    build_index([folder], folder / "index")
    return folder / "index"


def test_search_prints_the_contract(ragbed, index):
    found = ragbed.json("search", "When does the ferry leave?", "--index", index, "-k", 2)
    assert set(found) == {"hits"}
    first, second = found["hits"]
    assert set(first) == set(second) == {"rank", "score", "found_by", *PLACE}
    assert (first["rank"], first["found_by"], first["document"], first["pages"]) == (1, "dense", "ferry.pdf", [1, 2])
    assert first["score"] > second["score"]
    assert (second["pages"], first["format"]) == (None, "plain")
    assert "ferry to Bergen" in first["text"]
    assert "ferry.pdf, pages 1-2" in ragbed("search", "ferry", "--index", index, "-k", 1)[1]


def test_ask_prints_the_contract(ragbed, serve, index):
    server = serve(["<Thinking>Look.</Thinking><Answer>Norway [1] [7]</Answer>"])
    answer = ragbed.json("ask", "Oslo is the capital of what?", "--index", index, "--model", f"{server.url}#m",
                         "-k", 2)
    assert set(answer) == {"outcome", "answer", "refused", "citations", "evidence", "model", "usage", "seconds",
                           "invalid_citations", "failure", "notes"}  # the last three beyond the contract
    assert [answer[name] for name in ("outcome", "answer", "refused", "model", "invalid_citations", "failure")] == [
        "answered", "Norway [1] [7]", False, f"{server.url}#m", [7], None]
    (cited,) = answer["citations"]
    assert set(cited) == {"number", *PLACE}
    assert (cited["number"], cited["document"], cited["pages"]) == (1, "oslo.md", None)
    assert [one["number"] for one in answer["evidence"]] == [1, 2]
    assert cited == answer["evidence"][0]
    assert answer["usage"] == {"prompt_tokens": 700, "completion_tokens": 12, "cached_tokens": 0, "calls": 1,
                               "price": None}
    assert answer["seconds"] >= 0


def test_ask_says_a_refusal_and_a_failure(ragbed, serve, index):
    server = serve([f"<Answer>{REFUSAL}</Answer>", {"status": 418}])
    args = ("--index", index, "--model", f"{server.url}#m")
    _, out, _ = ragbed("ask", "Who?", *args, "--json")
    assert [json.loads(out)[name] for name in ("outcome", "refused", "citations")] == ["refused", True, []]
    status, out, err = ragbed("ask", "Who?", *args)
    assert (status, out) == (1, f"No answer: {server.url}#m: HTTP 418.\n")
    assert err.startswith(f"error by {server.url}#m: 1 calls")


def test_an_answer_to_a_prompt_that_the_server_cut_says_so(ragbed, serve, index):
    server = serve([{"text": "Norway [1]", "usage": {"prompt_tokens": 9, "completion_tokens": 2}}] * 2)
    args = ("ask", "Oslo is the capital of what?", "--index", index, "--model", f"{server.url}#m")
    cut = "the server counted fewer prompt tokens than the prompt has, so it probably cut the prompt; check with: " \
          f"ragbed doctor {server.url}#m"
    assert ragbed.json(*args)["notes"] == [cut]
    assert cut in ragbed(*args)[2]


def test_ask_traces_in_json_too(ragbed, serve, index):
    server = serve(["<Answer>Norway [1]</Answer>"])
    _, out, _ = ragbed("ask", "Oslo?", "--index", index, "--model", f"{server.url}#m", "-k", 1, "--trace", "--json")
    search, call = json.loads(out)["trace"]
    assert (search["kind"], search["query"], search["found"]) == ("search", "Oslo?", [1])
    assert (call["kind"], call["purpose"], call["shown"], call["text"]) == (
        "generate", "answer", [1], "<Answer>Norway [1]</Answer>")
    assert call["messages"] == server.requests[0][0]["messages"]


def test_ask_sends_the_temperature_that_was_asked_for_or_none(ragbed, serve, index):
    server = serve(["Norway"] * 3)
    args = ("ask", "Who?", "--index", index, "--model", f"{server.url}#m")
    for more in ((), ("--temperature", "0.7"), ("--temperature", "none")):
        assert ragbed(*args, *more)[0] == 0
    assert [body.get("temperature", "none") for body, _ in server.requests] == [0.0, 0.7, "none"]
    for wrong in ("-1", "nan", "hot"):
        ragbed.refuses(*args, f"--temperature={wrong}", says=["--temperature", wrong, "or none"])


def test_run_prints_the_contract(ragbed, serve, town):
    server = serve(town.reply)
    run = ragbed.json("run", town.config(server.url, reasoning=["direct", "plan_and_solve"]))
    assert set(run) == {"run", "cells", "columns", "views", "comparisons", "effects", "repeated", "error_analysis",
                        "tradeoff", "published", "notes", "results", "trial"}
    assert run["run"] == str(town.run)
    for cell in run["cells"]:
        assert set(cell) == {
            "id", "model", "retrieval", "retriever", "reasoning", "rules", "condition", "perturbation", "show",
            "format", "benchmark", "repeat", "judge", "scoring", "n", "outcomes", "metrics", "usage",
            "layout", "exemplars", "judge_usage", "seed", "framing", "passages", "answer_format", "chunker", "embedder"}
        assert (cell["retriever"], cell["perturbation"], cell["format"]) == (None, None, None)
        assert (cell["judge"], cell["scoring"], cell["n"]) == ("lexical", "corrected", 6)
        assert set(cell["outcomes"]) == {"answered", "refused", "malformed", "too_long", "budget", "timeout", "error"}
        assert all(set(metric) == {"mean", "low", "high", "n"} for metric in cell["metrics"].values())
        assert {"unified", "refusal_accuracy", "citation_f1"} <= set(cell["metrics"])
        assert cell["usage"] == {"prompt_tokens": 4200, "completion_tokens": 72, "calls": 6, "price": None}


def test_list_and_index_print_json(ragbed, tmp_path):
    for what in ("strategies", "retrievers", "benchmarks", "conditions", "rules", "perturbations",
                 "metrics", "models"):
        rows = ragbed.json("list", what)[what]
        assert all(row["name"] for row in rows)
    assert {row["name"] for row in json.loads(ragbed("list", "strategies", "--json")[1])["strategies"]} == {
        *REASONING, *RETRIEVAL, *HISTORY}
    (tmp_path / "a.txt").write_text("Some text.")
    (tmp_path / "b.txt").write_text("")
    report = json.loads(ragbed("index", tmp_path / "a.txt", tmp_path / "b.txt", "--out", tmp_path / "i", "--json")[1])
    assert set(report) == {"index", "documents", "parsed", "replaced", "removed", "chunks", "windows", "embedded",
                           "reused", "search", "seconds", "skipped", "unread", "unread_pages", "ocr_pages",
                           "unknown_metadata",
                           "estimate"}
    assert (report["documents"], report["chunks"]) == (1, 1)
    assert [set(one) for one in report["skipped"]] == [{"document", "reason"}]


def test_index_names_the_pages_of_a_pdf_that_are_pictures(ragbed, tmp_path):
    file = pymupdf.open()
    for text in ("The ferry leaves at ten.", "", "It arrives at noon."):
        page = file.new_page()
        page.insert_text((72, 100), text) if text else page.insert_image(
            page.rect, pixmap=pymupdf.Pixmap(pymupdf.csRGB, pymupdf.IRect(0, 0, 8, 8), False))
    file.save(tmp_path / "ferry.pdf")
    _, out, err = ragbed("index", tmp_path / "ferry.pdf", "--out", tmp_path / "i", "--embedder", "none")
    assert "ferry.pdf: page 2 is a picture without text, so it is not in the index" in err
    assert "0 skipped" in out


CLAIMED = {"direct": ["answer"], "chain_of_thought": ["answer"], "chain_of_draft": ["answer"],
           "plan_and_solve": ["answer"], "least_to_most": ["decompose", "solve", "solve", "answer"]}


def test_the_trace_shows_the_recipe_and_all_five_prompts_begin_with_the_same_bytes(ragbed, serve, index):
    def reply(body):
        plans = "simpler questions" in body["messages"][-1]["content"]
        return "1. Which land?\n2. Since when?" if plans else "<Answer>Norway [1]</Answer>"

    server = serve(reply)
    opening: set[str] = set()
    systems: set[str] = set()
    for name, purposes in CLAIMED.items():
        made = len(server.requests)
        status, out, _ = ragbed("ask", "Oslo is the capital of what?", "--index", index, "--reasoning", name,
                                "--model", f"{server.url}#m", "-k", 2, "--trace")
        assert status == 0
        steps = [line for line in out.splitlines() if line.startswith("== step")]
        assert steps[0] == "== step 1: search, found [1, 2]"
        assert "\n   for 'Oslo is the capital of what?'\n   [1] oslo.md\n" in out
        assert [step.split(": ")[1].split(",")[0] for step in steps[1:]] == purposes
        assert all(step.endswith("documents shown [1, 2]") for step in steps[1:])
        assert out.endswith("== answer\nNorway [1]\n  [1] oslo.md\n")
        for body, _ in server.requests[made:]:
            first = body["messages"][1]["content"]
            opening.add(first[:first.index("\n</documents>\n\n") + len("\n</documents>\n\n")])
            systems.add(body["messages"][0]["content"])
    assert len(systems) == len(opening) == 1
    (documents,) = opening
    assert documents.startswith(f"{template('framed_documents')}\n\n<documents>\n[1]\n")
    assert "\n\n[2]\n" in documents
    assert documents.endswith("\n\n")


def test_hostile_text_cannot_steer_the_terminal(ragbed, serve, index):
    server = serve(lambda _: f"<Answer>{STEERING} [1] :smile: [red]x[/red]</Answer>")
    asking = ("ask", f"Bread {STEERING}", "--index", index, "--model", f"{server.url}#m", "-k", 3)
    outputs = [ragbed(*asking), ragbed(*asking, "--trace"), ragbed(*asking, "--json"),
               ragbed("search", "flour", "--index", index), ragbed("search", "flour", "--index", index, "--json"),
               ragbed("ask", "x", "--index", index, "--model", f"no{STEERING}such"),
               ragbed("search", "x", "--index", f"no{STEERING}such"),
               ragbed("index", f"no{STEERING}such", "--out", "x"),
               ragbed("run", f"no{STEERING}such.yaml"), ragbed("report", f"no{STEERING}such")]
    assert [status for status, _, _ in outputs] == [0] * 5 + [2] * 5
    for _, out, err in outputs:
        assert not set(out + err) & set("\x1b\x07\x9b\u202e")
    assert ":smile: [red]x[/red]" in outputs[0][1]
    assert json.loads(outputs[2][1])["answer"] == f"{STEERING} [1] :smile: [red]x[/red]"
    assert "Flour and water." in outputs[3][1]


def test_bytes_that_are_no_text_can_be_asked(ragbed, serve, index):
    server = serve(["<Answer>Yes</Answer>"])
    status, out, _ = ragbed("ask", "Caf\udce9?", "--index", index, "--model", f"{server.url}#m")
    assert (status, out) == (0, "Yes\n")
    assert "Question: Caf\ufffd?" in server.requests[0][0]["messages"][1]["content"]
    assert ragbed("search", "Caf\udce9", "--index", index)[0] == 0


def test_bad_documents_are_named_with_their_reasons_and_the_others_indexed(ragbed, tmp_path):
    folder = tmp_path / "docs"
    folder.mkdir()
    with pymupdf.open() as pdf:
        pdf.new_page().insert_text((72, 72), "Secret")
        pdf.save(folder / "encrypted.pdf", encryption=pymupdf.PDF_ENCRYPT_AES_256, user_pw="u", owner_pw="o")
        whole = pdf.tobytes()
    (folder / "truncated.pdf").write_bytes(whole[:200])
    (folder / "empty.html").write_bytes(b"")
    (folder / "binary.html").write_bytes(bytes(range(256)) * 64)
    (folder / "nested.html").write_text("<div>" * 10_000 + "deep down" + "</div>" * 10_000)
    (folder / "charset.html").write_bytes("<meta charset=utf-8><p>caf\xe9</p>".encode("latin-1"))
    (folder / "good.txt").write_text("Good text.")
    os.symlink(folder / "nowhere", folder / "dangling.txt")
    (folder / "esc\x1b[31m.txt").write_text("")
    (folder / "esc\x1b[31m.doc").write_text("Not read here.")
    (folder / "\udcff.txt").write_text("A name that is no UTF-8.")
    status, out, err = ragbed("index", folder, "--out", tmp_path / "index")
    assert status == 0
    skipped = {line.split(": ")[0].removeprefix("skipped "): line for line in err.splitlines()
               if line.startswith("skipped ")}
    assert {"encrypted.pdf", "truncated.pdf", "empty.html", "binary.html", r"esc\x1b[31m.txt"} <= set(skipped)
    assert "password" in skipped["encrypted.pdf"]
    assert r"skipped unsupported files: 1 .doc (esc\x1b[31m.doc)" in err
    assert all(len(line.split(": ", 1)[1]) > 8 for line in skipped.values())
    assert "\x1b" not in out + err
    hits = json.loads(ragbed("search", "good text", "--index", tmp_path / "index", "--json")[1])["hits"]
    indexed = {hit["document"] for hit in hits}
    assert {"good.txt", "charset.html"} <= indexed
    assert {"nested.html", "dangling.txt"} <= indexed | set(skipped)
    ragbed.refuses("index", folder / "empty.html", "--out", tmp_path / "none", says=["nothing to index: empty.html"])
    ragbed.refuses("index", tmp_path / "none", "--out", tmp_path / "none", says=["none"])


def test_what_the_user_can_mend_is_one_line(ragbed, index, tmp_path, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    ragbed.refuses("search", "x", "--index", tmp_path, says=["is not an index", "ragbed index"])
    ragbed.refuses("ask", "x", "--index", tmp_path / "none", says=["does not exist"])
    ragbed.refuses("ask", "x", "--index", index, "--reasoning", "guess", says=["unknown reasoning strategy", "direct"])
    ragbed.refuses("ask", "x", "--index", index, "--retrieval", "guess", says=["unknown retrieval strategy", "once"])
    ragbed.refuses("ask", "x", "--index", index, "--model", "guess", says=["unknown model 'guess'"])
    ragbed.refuses("ask", "x", "--index", index, "--model", "openai:gpt", says=["OPENAI_API_KEY is not set"])
    ragbed.refuses("index", index.parent / "oslo.md", "--out", tmp_path, "--embedder", "no/such", says=["no/such"])
    ragbed.refuses("index", index.parent, "--out", tmp_path, "--chunker", "guess", says=["guess", "crest", "sections"])
    ragbed.refuses("index", index.parent, "--out", tmp_path, "--format", "pdf", says=["choose from: html, plain"])
    ragbed.refuses("index", index.parent, "--out", tmp_path, "--chunker", "crest", "--size", 200, says=["--size"])
    for empty in ("", " \n"):
        ragbed.refuses("search", empty, "--index", index, says=["the query is empty"])
        ragbed.refuses("ask", empty, "--index", index, says=["the question is empty"])
    ragbed.refuses("search", "x", "--index", index / "manifest.json", says=["is a file"])
    ragbed.refuses("report", tmp_path / "none", says=["holds no run"])
    ragbed.refuses("models", "pull", "guess", "--offline", says=["guess"])
    assert ragbed("ask", "x")[0] == ragbed("list", "guess")[0] == ragbed("guess")[0] == 2


HELP = """
import sys
sys.argv = ["ragbed", *sys.argv[1:]]
from ragbed.experiments.cli import main
try:
    main()
except SystemExit as end:
    assert not end.code
heavy = {"torch", "sentence_transformers", "faiss", "pymupdf", "langgraph", "langchain_openai", "openai",
         "scipy", "numpy", "pyarrow", "lxml", "bs4", "httpx2", "yaml"}
print(sorted(heavy & set(sys.modules)), file=sys.stderr)
"""


@pytest.mark.parametrize("args", [["--help"], ["run", "--help"]])
def test_help_loads_nothing_heavy(args):
    done = subprocess.run([sys.executable, "-c", HELP, *args], capture_output=True, text=True)
    assert done.stderr == "[]\n"
    assert "Usage: ragbed" in done.stdout


def test_a_missing_package_is_named_and_a_missing_part_of_ragbed_is_a_defect(ragbed, index, monkeypatch):
    monkeypatch.setitem(sys.modules, "faiss", None)
    ragbed.refuses("search", "ferry", "--index", index, says=["faiss is not installed; run: pip install ragbed"])
    monkeypatch.setitem(sys.modules, "ragbed.retrieval.index", None)
    with pytest.raises(ModuleNotFoundError):
        ragbed("search", "ferry", "--index", index)


def test_the_one_line_stays_one_that_can_be_read_whatever_a_file_calls_itself(ragbed, tmp_path):
    (tmp_path / "s.yaml").write_text(f"name: {'n' * 9000}\nmodels: m\nbenchmark: {{kind: demo}}\n")
    status, _, err = ragbed("run", tmp_path / "s.yaml")
    assert (status, err.count("\n"), len(err) < 2100) == (2, 1, True)
    assert err.endswith("cannot be the name of a folder; give a `name` of letters, digits and . _ -\n")
