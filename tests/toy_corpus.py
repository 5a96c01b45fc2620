"""A corpus of a few documents, and calls of tools over it."""
import asyncio

from ragbed.documents.parse import parse_document
from ragbed.documents.types import Chunk, Document, Page, digest
from ragbed.experiments.guests.agent_tools.toolbox import open_toolbox
from ragbed.strategies.types import ToolCall


class ToyCorpus:
    """Documents that a question may use as a whole."""

    chunks = ()

    def __init__(self, *documents, format="plain"):
        self._documents = {one.id: one for one in documents}
        self.ids, self.format = tuple(self._documents), format
        self.hash = digest(*(part for one in documents for part in (one.id, one.source, one.plain, one.html)))

    def document(self, id):
        return self._documents[id]

    def spans(self, id, start, end):
        return (Chunk.of(self._documents[id], self.format, start, end),)


def text_document(source, text, title="", pages=()):
    """A document whose two renderings are the same text, with pages that begin at these offsets."""
    numbered = tuple(Page(number, start, start) for number, start in enumerate(pages, start=1))
    return Document(f"id-{source}", source, title or source, text, text, numbered)


def html_document(source, markup):
    return parse_document(markup.encode(), source)


def use(tools, corpus, *calls, searches=None):
    """The outputs of calls, each the name of a tool and its arguments, with these tools open."""
    async def play():
        async with open_toolbox(tools) as toolbox:
            return [await toolbox.call(ToolCall(name, arguments), corpus, searches or {}) for name, arguments in calls]

    return asyncio.run(play())


def ask(tool, corpus, **arguments):
    """The output of one call of a built-in tool."""
    return use([tool], corpus, (tool, arguments))[0]


def spans(output):
    """The document, start and end of each passage of an output."""
    return [(one.document, one.start, one.end) for one in output.parts if isinstance(one, Chunk)]


def texts(output):
    return [one for one in output.parts if isinstance(one, str)]
