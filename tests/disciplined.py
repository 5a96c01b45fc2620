"""Scenes whose documents say something, for strategies that check what is said."""
from dataclasses import dataclass, field

from gathering import Scene

from agents.types import DecisionStep
from documents.types import Chunk

TEXTS = {"jaws": "Jaws is a film that Steven Spielberg directed in 1975.",
         "spielberg": "Steven Spielberg was born on December 18, 1946, in Cincinnati.",
         "shark": "The great white shark grows up to 6.1 metres long."}


@dataclass
class Told(Scene):
    """As a scene; what a name's document says stands in `texts`."""

    texts: dict = field(default_factory=lambda: TEXTS)

    async def _search(self, action):
        names = self.library.get(action.query, self.library.get("", "")).split()
        return [Chunk(name, name, "plain", 0, 9, self.texts[name]) for name in names]

    @property
    def purposes(self):
        return [call.purpose for call in self.calls]

    def prompt(self, place):
        """All messages of a call, as one text."""
        return "\n".join(message.content for message in self.calls[place].messages)


def decided(answer):
    return [(step.what, step.why) for step in answer.trace if isinstance(step, DecisionStep)]
