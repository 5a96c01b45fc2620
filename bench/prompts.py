"""Measure how well a model follows every strategy's prompts, and the prompts of other tools, over the same evidence.

    python bench/prompts.py HOTPOTQA_JSON --model MODEL [--questions 40] [--strategies NAME,...] [--forms tags,json]
                            [--rules grounded|reading]

HOTPOTQA_JSON is a file of HotpotQA with paragraphs and supporting facts. Each question is asked over four of its
paragraphs, including both supporting ones. Every fourth question gets four others, so that the right reply is a
refusal. The rules are `brief` and `grounded`, which demands citations and refusals; `reading` demands neither, and
neither does `naive`. This file also defines prompts of other tools as strategies:

- `naive` is FlashRAG's prompt for naive generation (Jin et al. 2024, github.com/RUC-NLPIR/FlashRAG, MIT).
  `naive_grounded` adds two sentences with the demands of `grounded`; `naive_chain` asks for steps first.
- `tutorial` is the prompt of LangChain's tutorial on RAG (`rlm/rag-prompt`); "don't know" counts as its refusal.
- `published ...` are those of CReSt (Khang et al. 2025, Figures 4 to 7).

Columns: replies with an answer or a refusal; those in tags or fields; answers that cite; refusals of questions without
and with an answer; EM, F1 and citation F1 over questions with an answer; mean tokens of all replies.
"""
from __future__ import annotations

import argparse
import json
import random
import re
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from ragbed.experiments import Run, run
from ragbed.strategies import REASONING
from ragbed.strategies.answering import draft
from ragbed.strategies.catalogue import SEARCH_ONLY
from ragbed.strategies.types import Draft, Evidence, Generate, Message, Recipe, Task

METRICS = (("refusal_accuracy", "refuses rightly"), ("refused_answerable", "wrongly"), ("em", "EM"), ("f1", "F1"),
           ("support_f1", "citation F1"))
_ASIDE = (SEARCH_ONLY, "few_shot")  # no prompt; needs examples
_NAIVE = """Answer the question based on the given document. Only give me the answer and do not output any other words.
The following are given documents.

{documents}"""
_DEMANDS = """ Cite each document that you use by its number, like [1]. If the documents do not hold the answer, say \
"I cannot answer"."""
_CHAIN = """Answer the question based on the given document. Think step by step first. Then write only the answer \
between <Answer> and </Answer>.
The following are given documents.

{documents}"""
_TUTORIAL = """You are an assistant for question-answering tasks. Use the following pieces of retrieved context to \
answer the question. If you don't know the answer, just say that you don't know. Use three sentences maximum and keep \
the answer concise.
Question: {question}
Context: {documents}
Answer:"""
_PUBLISHED = """You are a helpful assistant tasked with answering questions strictly based on the content of the \
provided documents. The documents may contain irrelevant or inaccurate information, so please reason carefully and \
critically when forming your answer.
<Rules>
1. Only use information that is explicitly stated in the documents. Do not rely on prior knowledge or make assumptions \
beyond the content.
2. If the question cannot be answered solely based on the provided documents, respond with: "I cannot answer because \
the question is unanswerable with the documents." Then briefly explain why the information is insufficient.
3. Always cite the document numbers used to derive your answer, using the format [1], [2], etc.
4. If multiple documents were referenced, include all relevant numbers at the end of your answer.
5. {last}
</Rules>
<Question>
{question}
</Question>
<Documents>
{documents}
</Documents>"""
_LAST = {
    "direct": "Answer the question directly. Do not return any preamble, explanation, or reasoning.",
    "chain_of_thought": "Think step by step to answer the following question. Return thinking steps",
    "chain_of_draft": "Think step by step, but only keep a minimum draft for each thinking step, with 5 words at most. "
                      "Return thinking steps",
    "plan_and_solve": "First understand the problem and devise a plan to solve the problem. Then, carry out the plan "
                      "to solve the problem step by step. Return intermidiate steps"}
_BETWEEN = " between <Thinking> and </Thinking> and the answer between <Answer> and </Answer>."


def _asked(task: Task, evidence: Evidence, user: str, system: str = "", thinks: bool = False) -> Recipe:
    documents = "\n\n".join(f"[{passage.number}]\n{passage.chunk.content}" for passage in evidence)
    said = {"question": task.question, "documents": documents}
    texts = (("system", system), ("user", user)) if system else (("user", user),)
    messages = tuple(Message(role, (re.sub(r"\{(question|documents)\}", lambda one: said[one[1]], text),))
                     for role, text in texts)
    call = Generate(messages, "answer", tuple(passage.number for passage in evidence))
    return (yield from draft(call, replace(task, answer_format="tags"), thinks=thinks, last=True))


def naive(task: Task) -> Recipe:
    """FlashRAG's."""
    return (yield from _asked(task, (yield from task.gather(task.question)), "Question: {question}", _NAIVE))


def naive_grounded(task: Task) -> Recipe:
    """FlashRAG's, with what `grounded` demands."""
    system = _NAIVE.replace(" words.\n", f" words.{_DEMANDS}\n")
    return (yield from _asked(task, (yield from task.gather(task.question)), "Question: {question}", system))


def naive_chain(task: Task) -> Recipe:
    """FlashRAG's, with steps before the answer."""
    return (yield from _asked(task, (yield from task.gather(task.question)), "Question: {question}", _CHAIN,
                              thinks=True))


def tutorial(task: Task) -> Recipe:
    """One call with the tutorial's prompt."""
    said: Draft = yield from _asked(task, (yield from task.gather(task.question)), _TUTORIAL)
    return replace(said, refused=bool(re.search(r"\b(?:don.t|do not) know\b", said.text)))


def published(task: Task, *, of: Literal["direct", "chain_of_thought", "chain_of_draft", "plan_and_solve"]) -> Recipe:
    """CReSt's."""
    user = _PUBLISHED.replace("{last}", _LAST[of] + _BETWEEN * (of != "direct"))
    return (yield from _asked(task, (yield from task.gather(task.question)), user, thinks=of != "direct"))


def questions(path: Path, count: int) -> Iterator[dict[str, Any]]:
    """Yield the first questions as MuSiQue's records."""
    rows = json.loads(path.read_text(encoding="utf-8"))[:count]
    for place, row in enumerate(rows):
        gold = {title for title, _ in row["supporting_facts"]}
        others = [one for one in row["context"] if one[0] not in gold]
        answerable = place % 4 != 3
        shown = [*(one for one in row["context"] if one[0] in gold), *others[:2]] if answerable else others[:4]
        random.Random(row["_id"]).shuffle(shown)
        yield {"id": f"2hop__{row['_id']}", "question": row["question"], "answer": row["answer"],
               "answer_aliases": [], "answerable": answerable, "question_decomposition": [], "paragraphs": [
                   {"idx": at, "title": title, "paragraph_text": "".join(text), "is_supporting": title in gold}
                   for at, (title, text) in enumerate(shown)]}


def _table(finished: Run) -> str:
    frame = finished.frame()
    header = ["prompt", "whole", "in form", "cites", *(title for _, title in METRICS), "tokens"]
    lines = [header, ["---"] * len(header)]
    for name, cell in finished.cells.items():
        own = frame[frame.cell_name == name]
        said = own[own.outcome == "answered"]
        figures = cell["metrics"]
        lines.append([name, *(_figure(figures[metric]) for metric in ("well_formed", "tagged")),
                      f"{(said.cited != '[]').mean():.0%}" if len(said) else "-",
                      *(_figure(figures[metric]) for metric, _ in METRICS), f"{own.completion_tokens.mean():.0f}"])
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _figure(figure: dict[str, Any]) -> str:
    return "-" if figure["mean"] is None else f"{figure['mean']:.2f} [{figure['low']:.2f}, {figure['high']:.2f}]"


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("file", type=Path)
    parser.add_argument("--model", required=True)
    parser.add_argument("--questions", type=int, default=40)
    parser.add_argument("--strategies", help="comma-separated names, including those of other tools; all by default")
    parser.add_argument("--forms", default="tags", help="tags, json or tags,json")
    parser.add_argument("--rules", choices=["grounded", "reading"], default="grounded")
    parser.add_argument("--max-tokens", type=int, default=256)
    parser.add_argument("--concurrency", type=int, default=16, help="concurrent calls")
    parser.add_argument("--out", help="keep the runs in this folder")
    return parser.parse_args()


def main() -> None:
    options = _options()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "questions.jsonl"
        file.write_text("".join(json.dumps(one) + "\n" for one in questions(options.file, options.questions)))
        for form in options.forms.split(","):
            foreign: dict[str, Any] = {name: {"kind": f"{__file__}:{name}", "name": name}
                                       for name in ("naive", "naive_grounded", "naive_chain", "tutorial")}
            foreign |= {f"published {of}": {"kind": f"{__file__}:published", "of": of, "name": f"published {of}"}
                        for of in _LAST}
            wanted = options.strategies.split(",") if options.strategies else [*REASONING, *foreign]
            asked = [foreign.get(name, name) for name in wanted if name not in _ASIDE]
            with run({"name": f"prompts-{options.rules}-{form}", "out": options.out or folder,
                      "models": options.model, "benchmark": {"kind": "musique", "path": str(file)},
                      "rules": options.rules, "conditions": "provided", "brief": True,
                      "answer_formats": form, "limits": {"max_tokens": options.max_tokens},
                      "calls": {"calls": {"concurrency": options.concurrency, "seconds": 900}},
                      "reasoning": [one for one in asked if form == "tags" or isinstance(one, str)]}) as finished:
                print(f"\n{options.rules}, {form}, {options.questions} questions, {options.model}\n")
                print(_table(finished), flush=True)


if __name__ == "__main__":
    main()
