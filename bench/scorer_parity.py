"""Compare ragbed's figures with the published scorers of BrowseComp-Plus and LongMemEval on made-up runs.

    python bench/scorer_parity.py browsecomp_plus CHECKOUT [FOLDER]
    python bench/scorer_parity.py longmemeval CHECKOUT [FOLDER]

CHECKOUT is a clone of github.com/texttron/BrowseComp-Plus or github.com/xiaowu0162/LongMemEval. The script writes a
made-up benchmark, runs ragbed with a scripted model, exports the answers, and has the published scorer read them. The
scorer's judge is scripted too: it repeats the grades of ragbed's lexical judge. It prints both sets of figures. Exit
status 1: they differ.
"""
import json
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT / "tests")]
from scripted_server import ScriptedServer  # noqa: E402

from ragbed import Run, run  # noqa: E402

VLLM = '''
import json, os, re
from types import SimpleNamespace as Made
GRADES = json.load(open(os.environ["MADE_GRADES"]))
def judge(prompt):
    question = prompt.split("[question]: ", 2)[1].split("\\n")[0]
    stated = re.search(r"Confidence: ([0-9.]+)", prompt.split("[response]: ", 1)[1])
    sure = stated[1] if stated else 100
    return f"extracted_final_answer: x\\nreasoning: y\\n{GRADES[question]}\\nconfidence: {sure}%"
class SamplingParams:
    def __init__(self, **parameters): pass
class LLM:
    def __init__(self, **parameters): pass
    def chat(self, conversations, *parameters, **more):
        return [Made(outputs=[Made(text=judge(one[0]["content"]))]) for one in conversations]
'''
OPENAI = '''
import json, os
from types import SimpleNamespace as Made
GRADES = json.load(open(os.environ["MADE_GRADES"]))
class RateLimitError(Exception): pass
class APIError(Exception): pass
def create(messages, **parameters):
    text = messages[0]["content"].split("Question: ", 1)[1].split("\\n")[0]
    return Made(choices=[Made(message=Made(content=GRADES[text]))])
class OpenAI:
    def __init__(self, **parameters): self.chat = Made(completions=Made(create=create))
'''
TQDM = "def tqdm(items, **settings): return items\n"
BACKOFF = "expo = None\ndef on_exception(*parameters): return lambda function: function\n"


def ragbed(*arguments: object) -> str:
    return subprocess.run([sys.executable, "-m", "ragbed", *map(str, arguments)], cwd=ROOT, check=True, text=True,
                          capture_output=True, env={**os.environ, "PYTHONPATH": str(ROOT)}).stdout


def write_lines(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def published(folder: Path, modules: dict[str, str], grades: dict[str, str], *command: object) -> str:
    """Run a published scorer with scripted modules in place of its judge, and return what it prints."""
    for name, text in modules.items():
        (folder / "fakes").mkdir(exist_ok=True)
        (folder / "fakes" / f"{name}.py").write_text(text)
    (folder / "grades.json").write_text(json.dumps(grades))
    return subprocess.run([sys.executable, *map(str, command)], cwd=folder, check=True, text=True, capture_output=True,
                          env={**os.environ, "PYTHONPATH": str(folder / "fakes"),
                               "MADE_GRADES": str(folder / "grades.json"), "OPENAI_API_KEY": "none"}).stdout


def records(run: Path, to: Path) -> list[dict[str, Any]]:
    ragbed("export", run, to)
    return [json.loads(line) for line in to.read_text(encoding="utf-8").splitlines()]


def browsecomp_plus(checkout: Path, folder: Path, count: int = 340) -> tuple[dict[str, Any], dict[str, Any]]:
    rng = random.Random(7)
    sure = rng.sample(range(1000), count)  # all different, so that sorting by confidence has one result
    rows = []
    for number in range(count):
        documents = [{"docid": str(1000 * number + place), "url": f"https://x/{number}/{place}",
                      "text": f"Harbour {number}, note {place}: {rng.choice(['tide', 'reef', 'mole'])} {rng.random()}"}
                     for place in range(9)]
        evidence = rng.sample(documents, 3)
        rows.append({"query_id": str(number), "query": f"Which harbour has the number {number}?",
                     "answer": f"Harbour {number}", "gold_docs": evidence[:1], "evidence_docs": evidence,
                     "negative_docs": [one for one in documents if one not in evidence]})
    data = write_lines(folder / "made.jsonl", rows)

    def reply(body: dict[str, Any]) -> Any:
        text = "\n".join(str(message["content"]) for message in body["messages"])
        number = int(text.rpartition("number ")[2].partition("?")[0])
        if number % 17 == 0:
            return {"status": 400, "error": {"message": "no"}}
        turns = sum(message["role"] == "assistant" for message in body["messages"])
        if turns < number % 4:
            return f"Thought: more.\nSearch: harbour note {rng.randrange(9)} {number}"
        if turns == number % 4:
            return "Thought: enough.\nFinish"
        if number % 13 == 0:
            return "<Answer>unanswerable</Answer>"
        right = number if number % 3 else number + 1
        return f"<Answer>Harbour {right} [1]. Confidence: {sure[number] / 10}%</Answer>"

    made = play(folder, reply, {"benchmark": {"kind": "browsecomp_plus", "path": str(data)}, "retriever": "bm25",
                               "reasoning": [{"kind": "react", "tools": "text"}]})
    (folder / "runs").mkdir()
    ragbed("export", made.path, folder / "runs" / "made", "--as", "browsecomp_plus")
    grades = {rows[int(one.result.question)]["query"]: f"correct: {'yes' if one.result.scores['right'] else 'no'}"
              for one in made.records()}
    (folder / "qrels.txt").write_text("".join(f"{row['query_id']} Q0 {one['docid']} 1\n" for row in rows
                                              for one in row["evidence_docs"]))
    published(folder, {"vllm": VLLM, "tqdm": TQDM}, grades, checkout / "scripts_evaluation" / "evaluate_run.py",
              "--input_dir", folder / "runs" / "made", "--ground_truth", data, "--qrel_evidence", folder / "qrels.txt",
              "--eval_dir", folder / "evaluated")
    summary, = (folder / "evaluated").rglob("evaluation_summary.json")
    theirs = json.loads(summary.read_text())
    view = made.views["browsing"]
    ours = dict(zip(view.header, view.rows[0], strict=True))
    return {name: ours.get(name) for name in ("accuracy", "recall", "calibration error", "calls: search")}, {
        "accuracy": theirs["Accuracy (%)"], "recall": theirs["Recall (%)"],
        "calibration error": theirs["Calibration Error (%)"], "calls: search": theirs["avg_tool_stats"]["search"]}


def longmemeval(checkout: Path, folder: Path, count: int = 120) -> tuple[dict[str, Any], dict[str, Any]]:
    rng = random.Random(7)
    kinds = ("single-session-user", "single-session-preference", "single-session-assistant", "multi-session",
             "temporal-reasoning", "knowledge-update")
    rows = [{"question_id": f"q{number}{'_abs' * (number % 9 == 0)}", "question_type": rng.choice(kinds),
             "question": f"How long was wait {number}?", "answer": f"{number} days",
             "question_date": "2023/05/30 (Tue) 23:40", "haystack_session_ids": ["a", "b"],
             "haystack_dates": ["2023/05/20 (Sat) 02:21", "2023/05/22 (Mon) 09:00"], "answer_session_ids": ["a"],
             "haystack_sessions": [[{"role": "user", "content": f"Wait {number} took {number} days."}],
                                   [{"role": "user", "content": "Bring a book."}]]} for number in range(count)]
    (folder / "made.json").write_text(json.dumps(rows))

    def reply(body: dict[str, Any]) -> Any:
        number = int(str(body["messages"][-1]["content"]).rpartition("was wait ")[2].partition("?")[0])
        if number % 17 == 0:
            return {"status": 400, "error": {"message": "no"}}
        return "<Answer>unanswerable</Answer>" if number % 4 == 0 else f"<Answer>{number + number % 3} days</Answer>"

    made = play(folder, reply, {"benchmark": {"kind": "longmemeval", "path": str(folder / "made.json")},
                                "retriever": "bm25", "reasoning": "direct"})
    ragbed("export", made.path, folder / "hypotheses.jsonl", "--as", "longmemeval")
    texts = {row["question_id"]: row["question"] for row in rows}
    grades = {texts[one.result.question]: "Yes." if one.result.scores["right"] else "No" for one in made.records()}
    modules = {"openai": OPENAI, "tqdm": TQDM, "backoff": BACKOFF}
    scripts = checkout / "src" / "evaluation"
    published(folder, modules, grades, scripts / "evaluate_qa.py", "gpt-4o", folder / "hypotheses.jsonl",
              folder / "made.json")
    said = published(folder, {}, grades, scripts / "print_qa_metrics.py",
                     folder / "hypotheses.jsonl.eval-results-gpt-4o", folder / "made.json")
    theirs = {name.strip(): float(value.split()[0]) for name, _, value in (
        line.partition(": ") for line in said.splitlines()) if value}
    names = {"Task-averaged Accuracy": "mean of the types", "Overall Accuracy": "all questions",
             "Abstention Accuracy": "abstention"}
    ours = {name: round(value["mean"] if isinstance(value, dict) else value, 4)
            for name, _, _, value in made.views["memory"].rows}
    return ours, {names.get(name, name): value for name, value in theirs.items()}


def play(folder: Path, reply: Any, settings: dict[str, Any]) -> Run:
    """Run ragbed with a scripted model."""
    server = ScriptedServer(reply)
    try:
        return run({"models": f"{server.url}#m", "name": "made", "out": str(folder / "ours"), **settings})
    finally:
        server.close()


if __name__ == "__main__":
    scorers = {"browsecomp_plus": browsecomp_plus, "longmemeval": longmemeval}
    with tempfile.TemporaryDirectory() as kept:
        ours, theirs = scorers[sys.argv[1]](Path(sys.argv[2]), Path(sys.argv[3] if len(sys.argv) > 3 else kept))
    print(json.dumps({"ragbed": ours, "published": theirs}, indent=2))
    sys.exit(ours != theirs)
