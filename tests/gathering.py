"""Questions about a film, played with scripted replies for each purpose over documents that have short names."""
from ragbed.agents import Limits, Scripted
from ragbed.documents import Chunk

QUESTION = "Where was the director of Jaws born?"


def chunk(name):
    return Chunk(name, name, "plain", 0, 9, f"Text of {name}.")


class Scene(Scripted):
    """A scripted model whose searches find documents by their names.

    Args:
        library: what a query finds, by names in one string; what stands under `""` for every other query.
        texts: of the documents, by name; "Text of NAME." where it is not given.
    """

    def __init__(self, library, replies=(), limits=None, texts=None):
        script = {"answer": "<Answer>Cincinnati [1]</Answer>", **dict(replies)}
        super().__init__(script, self.found, limits or Limits())
        self.names, self.texts = library, texts or {}

    def found(self, search):
        names = self.names.get(search.query, self.names.get("", "")).split()
        return [Chunk(name, name, "plain", 0, 9, self.texts.get(name, f"Text of {name}.")) for name in names]

    def play(self, gathering, answering="direct", **changes):
        """The answer to a question under these retrieval and reasoning settings."""
        return super().play(answering, QUESTION, gathering, **changes)

    @property
    def shown(self):
        """The names of the documents that the prompt of the answer shows, in its order."""
        lines = self.prompts("answer")[-1].splitlines()
        return " ".join(line.removeprefix("Text of ").rstrip(".") for line in lines if line.startswith("Text of "))

    @property
    def purposes(self):
        return [call.purpose for call in self.calls]

    def prompt(self, place):
        """All messages of a call, as one text."""
        return "\n".join(message.content for message in self.calls[place].messages)


def decisions(answer):
    """What the strategy made up its mind about, with why."""
    return [(step.what, step.why) for step in answer.trace if hasattr(step, "why")]
