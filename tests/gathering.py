"""Questions played by the real playback, with scripted replies for each purpose and scripted searches."""
import asyncio
from dataclasses import dataclass, field

from agents.outcome import CallOutcome
from agents.playback import Means, Playback
from agents.settings import Limits
from documents.types import Chunk
from strategies.settings.choosing import reasoning, retrieval
from strategies.types import Generate, Reply, Task

QUESTION = "Where was the director of Jaws born?"


def chunk(name):
    return Chunk(name, name, "plain", 0, 9, f"Text of {name}.")


@dataclass
class Scene:
    """What a question made of its replies and searches.

    Attributes:
        library: what a query finds, by names in one string; what stands under `""` for every other query.
        replies: what the model says, by purpose: a text for all calls, or a list of them in order.
    """

    library: dict
    replies: dict = field(default_factory=dict)
    limits: Limits = field(default_factory=Limits)
    rounds: list = field(default_factory=list)
    calls: list = field(default_factory=list)

    def play(self, gathering, answering="direct", **changes):
        """The answer to a question under these retrieval settings.

        Args:
            answering: the name of a reasoning strategy, or one itself.
        """
        task = Task("q", QUESTION, retrieval(gathering), **changes)
        means = Means(self._search, self._ask, self._key, chunk, self.limits)
        recipe = answering if callable(answering) else reasoning(answering)
        return asyncio.run(self._played(Playback(task, recipe, means)))

    async def _played(self, play):
        while play.node != "finish" and not play.stop_over_budget():
            if play.node == "search":
                self.rounds.append([action.query for action in play.searches()])
                play.take_found([await play.means.search(action) for action in play.searches()])
            else:
                play.take_asked([await play.means.ask(call, 0.0) for call in play.calls()])
        return play.answer()

    async def _search(self, action):
        return [chunk(name) for name in self.library.get(action.query, self.library.get("", "")).split()]

    async def _ask(self, call: Generate, deadline):
        self.calls.append(call)
        replies = {"answer": "<Answer>Cincinnati [1]</Answer>", **self.replies}[call.purpose]
        said = replies if isinstance(replies, str) else replies.pop(0)
        return CallOutcome("", said if not isinstance(said, str) else Reply(said))

    def _key(self, call):
        return ""

    @property
    def searched(self):
        """The queries, in order."""
        return [query for one in self.rounds for query in one]

    def prompts(self, purpose):
        """The last message of every call of that purpose."""
        return [call.messages[-1].content for call in self.calls if call.purpose == purpose]

    @property
    def shown(self):
        """The names of the documents that the prompt of the answer shows, in its order."""
        lines = self.prompts("answer")[-1].splitlines()
        return " ".join(line.removeprefix("Text of ").rstrip(".") for line in lines if line.startswith("Text of "))


def decisions(answer):
    """What the strategy made up its mind about, with why."""
    return [(step.what, step.why) for step in answer.trace if hasattr(step, "why")]
