"""An agent with scripted replies, over two tools whose documents have short names."""
from gathering import QUESTION, chunk

from ragbed.agents import Scripted
from ragbed.agents.scripted import tool_call_reply
from ragbed.agents.tools import ToolOutput
from ragbed.strategies import ToolSpec

SEARCH = ToolSpec("search", "Search the documents.", {"type": "object", "required": ["query"], "properties": {
    "query": {"type": "string"}, "k": {"type": "integer"}}})
OPEN = ToolSpec("open", "Open a document.", {"type": "object", "required": ["document"], "properties": {
    "document": {"type": "string"}, "page": {"type": "integer"}}})
LIBRARY = {"Jaws": "jaws", "Spielberg": "spielberg jaws", "everything": "a b c d e f g h"}
ANSWER = "<Answer>Cincinnati [2]</Answer>"


def calls(*made):
    """A reply that calls tools: each is a name and its arguments."""
    return tool_call_reply(made)


FINISH = calls(("finish", {}))


class Agent(Scripted):
    """A scripted model whose tools return documents by their names, or what `outputs` has for a tool's name."""

    def __init__(self, replies, outputs=None, **settings):
        super().__init__(replies, tools=self.call)
        self.outputs, self.settings, self.called = outputs or {}, settings, []

    def call(self, call):
        self.called.append((call.tool, dict(call.arguments)))
        if call.tool in self.outputs:
            return self.outputs[call.tool]
        names = LIBRARY.get(call.arguments.get("query"), "") if call.tool == "search" else call.arguments["document"]
        return ToolOutput(tuple(map(chunk, names.split())))

    def ask(self, **changes):
        """The answer to the question."""
        return self.play({"kind": "agent", **self.settings}, QUESTION, **{"tools": (SEARCH, OPEN), **changes})

    @property
    def shown(self):
        """The evidence of each call of the model."""
        return [call.shown for call in self.calls]

    def text(self, place):
        """All messages of a call of the model, as one text."""
        return "\n".join(message.content for message in self.calls[place].messages)
