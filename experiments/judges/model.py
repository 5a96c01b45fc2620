"""A model as judge: asked by the rubric, and once more where its reply cannot be read; as published, only once."""
from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from experiments.judges.base import Graded, Judging
from experiments.judges.rubrics import BRIEFS
from experiments.record import Verdict
from strategies.reading import read_answer
from strategies.types import Failure, Generate, Message


class ModelJudge(BaseModel):
    """Settings of a judge model.

    Attributes:
        model: as `--model` takes it; the name that stands beside its grades.
        max_tokens: limit on one reply; raise it for a model that reasons first.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: Literal["model"] = "model"
    model: str
    max_tokens: int = Field(default=512, gt=0)

    @property
    def name(self) -> str:
        return self.model

    def judge(self, graded: Graded) -> Judging:
        """Ask once; under corrected scoring once more where the reply cannot be read. Then the answer is unjudged."""
        published = graded.scoring == "as-published"
        brief = BRIEFS[graded.rubric]
        if brief.as_published is not None and published:
            material = yield from brief.as_published(graded, self.max_tokens)
            if isinstance(material, str):
                return Verdict(judge=self.name, note=material)
            graded = material
        messages: tuple[Message, ...] = (Message("user", (brief.ask(graded),)),)
        flaws = []
        for purpose in ("judge",) if published else ("judge", "judge_repair"):
            reply = yield Generate(messages, purpose, max_tokens=self.max_tokens, see_failure=True)
            if isinstance(reply, Failure):
                return Verdict(judge=self.name, note=f"call failed: {reply.kind}")
            verdict = None if reply.finish_reason == "length" else \
                brief.read(read_answer(reply.text)[0], graded, self.name)
            if verdict is not None:
                return verdict
            # A reply that was cut is not read at all: what it would have gone on to say is unknown.
            flaws.append("cut by the token limit" if reply.finish_reason == "length" else
                         "unreadable" if reply.text.strip() else "empty")
            messages += (Message("assistant", (reply.text or "(empty)",)), Message("user", (brief.repair(graded),)))
        note = flaws[0] if len(set(flaws)) == 1 else "unreadable"
        return Verdict(judge=self.name, note=note if published else f"{note} twice")
