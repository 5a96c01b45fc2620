"""Note what a server reads, sends to its model and logs while it answers a request."""
from __future__ import annotations

import io
from typing import Any

from ragbed.agents.client import Completion
from ragbed.agents.scripted import answer_reply
from ragbed.experiments.guests.access.canaries import Canary
from ragbed.experiments.guests.access.leak_routes import Stages

STAGES = ("found", "model", "said", "cited", "shown", "logged")


class Watch:
    """Notes since `begin` the documents whose text was read, the prompts, and the log.

    Args:
        parrot: repeat each prompt instead of calling the model.
    """

    def __init__(self, parrot: bool) -> None:
        self._parrot, self._read, self._prompts = parrot, set[str](), list[str]()
        self.log = io.StringIO()

    def begin(self) -> None:
        """Forget what was noted."""
        self._read.clear()
        self._prompts.clear()
        self.log.truncate(self.log.seek(0))

    def attach(self, index: Any, client: Any) -> None:
        """Watch the texts of an open index, and the client of a model."""
        document, complete = index.document, client.complete
        index.chunks = _WatchedChunks(index.chunks, self._read)

        def read(id: str) -> Any:
            self._read.add(id)
            return document(id)

        async def call(action: Any, **options: Any) -> Completion:
            prompt = "\n".join(message.content for message in action.messages)
            self._prompts.append(prompt)
            if not self._parrot:
                return await complete(action, **options)  # type: ignore[no-any-return]
            marks = "".join(f"[{number}]" for number in range(1, 21))
            return Completion(answer_reply(action, prompt.replace("<", "(").replace("[", "(") + marks), 1, 0.0)

        index.document, client.complete = read, call

    def stages(self, canary: Canary, got: Stages, sent: str) -> frozenset[str]:
        """Return the stages at which a canary was seen, apart from what the client sent itself."""
        seen = {stage: canary.seen_in(got.get(stage, ""), sent) for stage in ("said", "cited", "shown")}
        seen |= {"found": canary.document in self._read, "logged": canary.seen_in(self.log.getvalue(), sent),
                 "model": any(canary.seen_in(prompt, sent) for prompt in self._prompts)}
        seen["found"] |= seen["model"] or seen["shown"]  # or found earlier, and remembered
        return frozenset(stage for stage in STAGES if seen[stage])


class _WatchedChunks:
    """The chunks of an index. It notes whose text is read."""

    def __init__(self, chunks: Any, read: set[str]) -> None:
        self._chunks, self._read = chunks, read

    def __getattr__(self, name: str) -> Any:
        return getattr(self._chunks, name)

    def __len__(self) -> int:
        return len(self._chunks)

    def __getitem__(self, row: Any) -> Any:
        found = self._chunks[row]
        self._read.update(one.document for one in (found if isinstance(row, slice) else [found]))
        return found
