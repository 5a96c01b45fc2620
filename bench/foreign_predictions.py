"""Write the files of `tests/data/predictions` with the tools themselves: eight answers to the bundled demo questions.

    python3 -m venv .venv-tools
    .venv-tools/bin/pip install inspect-ai==0.3.285 ragas==0.4.3 'langchain-community<0.4' dacite dataclasses-json
    .venv-tools/bin/pip install --no-deps ragchecker==0.1.9 pyragnarok==0.0.1
    .venv-tools/bin/python bench/foreign_predictions.py tests/data/predictions

The TREC RAG file is written by Ragnarök, the track's own baseline, which leaves the run id to the submitter. The
RAGChecker file is written by its container class only, because the rest of RAGChecker needs torch.
"""
import importlib
import json
import shutil
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any

QUESTIONS = Path(__file__).parent.parent / "experiments" / "data" / "demo" / "questions.jsonl"
REFUSAL = "I cannot answer because the question is unanswerable with the documents."
# By question: the sentences with the places that each cites, from 1, and the documents that were read.
ANSWERS: dict[str, tuple[list[tuple[str, list[int]]], list[str]]] = {
    "tennis-born-first": ([("Raffaella Reggi", [1, 2])], ["raffaella-reggi.html", "lucie-hradecka.html"]),
    "railway-edinburgh": ([("London", [2])], ["toyota.html", "east-coast-main-line.html",
                                              "otterington-railway-station.html"]),
    "sas-founded": ([("It was founded in 1950.", [1])], ["special-air-service.html"]),
    "bisquick-state": ([(REFUSAL, [])], ["bisquick.html"]),
    "accession-opposite": ([("Whitehall", [1])], ["accession-council.html"]),
    "london-bridge-now": ([("It was sold.", []), ("London Bridge is in Lake Havasu City, Arizona now.", [])],
                          ["london-bridge-lake-havasu-city.txt"]),
    "wellington-island": ([(REFUSAL, [])], ["wellington.txt"]),
    "fire-triangle": ([("heat, fuel, and an oxidizing agent", [1])], ["toyota.html", "juki.html"]),
}


def samples() -> list[dict[str, Any]]:
    """Return the answers with their questions; citations stand in the text."""
    questions = [json.loads(line) for line in QUESTIONS.read_text(encoding="utf-8").splitlines()]
    return [{**question, "sentences": ANSWERS[question["id"]][0], "documents": ANSWERS[question["id"]][1],
             "response": "\n".join(f"{text} {cited}" if cited else text for text, cited in ANSWERS[question["id"]][0])}
            for question in questions if question["id"] in ANSWERS]


def write_inspect(folder: Path) -> None:
    """Evaluate a mock model with Inspect, once into each kind of log, of two epochs: the answers, and refusals."""
    from inspect_ai import Task, eval
    from inspect_ai.dataset import MemoryDataset, Sample
    from inspect_ai.model import ModelOutput, ModelUsage, get_model
    from inspect_ai.scorer import includes
    from inspect_ai.solver import solver

    def output(text: str) -> ModelOutput:
        made = ModelOutput.from_content("mockllm/model", text)
        made.usage = ModelUsage(input_tokens=100, output_tokens=7, total_tokens=107)
        return made

    by_id = {one["id"]: one for one in samples()}

    @solver
    def answers():  # noqa: ANN202
        async def solve(state, generate):  # noqa: ANN001, ANN202
            one = by_id[state.sample_id]
            state.metadata["contexts"] = [{"document": name} for name in one["documents"]]
            state.output = output(one["response"] if state.epoch == 1 else REFUSAL)
            return state
        return solve

    for kind in ("eval", "json"):
        task = Task(dataset=MemoryDataset([Sample(id=one["id"], input=one["question"], target=one["answers"])
                                           for one in by_id.values()]),
                    solver=answers(), scorer=includes(), name="demo", epochs=2 if kind == "eval" else 1)
        with TemporaryDirectory() as logs:
            log = eval(task, model=get_model("mockllm/model"), log_dir=logs, log_format=kind, display="none",
                       log_realtime=False)[0]
            shutil.move(log.location, folder / f"inspect.{kind}")


def write_ragas(folder: Path) -> None:
    """Write an EvaluationDataset of ragas as JSON Lines and as CSV."""
    from ragas import EvaluationDataset

    dataset = EvaluationDataset.from_list([
        {"user_input": one["question"], "response": one["response"], "reference": one["answers"][0],
         "retrieved_contexts": [f"of {name}" for name in one["documents"]], "retrieved_context_ids": one["documents"]}
        for one in samples()])
    dataset.to_jsonl(folder / "ragas.jsonl")
    dataset.to_csv(folder / "ragas.csv")


def write_ragchecker(folder: Path) -> None:
    """Write RAGChecker's input."""
    container = ragchecker_container()
    results = container.RAGResults([container.RAGResult(
        query_id=one["id"], query=one["question"], gt_answer=one["answers"][0], response=one["response"],
        retrieved_context=[container.RetrievedDoc(doc_id=name, text=f"of {name}") for name in one["documents"]])
        for one in samples()])
    (folder / "ragchecker.json").write_text(results.to_json(indent=2) + "\n", encoding="utf-8")


def ragchecker_container() -> ModuleType:
    """Import RAGChecker's container without the rest of its package."""
    folder = Path(next(path for path in map(Path, sys.path) if (path / "ragchecker").is_dir())) / "ragchecker"
    package = sys.modules["ragchecker"] = ModuleType("ragchecker")
    package.__path__ = [str(folder)]
    return importlib.import_module("ragchecker.container")


def write_trec_rag(folder: Path) -> None:
    """Write a run by Ragnarök's writer."""
    from ragnarok.data import CitedSentence, DataWriter, Query, Result

    DataWriter([Result(Query(one["question"], one["id"]), one["documents"], [
        CitedSentence(text, [place - 1 for place in cited]) for text, cited in one["sentences"]])
        for one in samples()]).write_in_jsonl_format(str(folder / "trec_rag.jsonl"))


if __name__ == "__main__":
    target = Path(sys.argv[1])
    for write in (write_inspect, write_ragas, write_ragchecker, write_trec_rag):
        write(target)
