"""Pipelines of Haystack as users have them, over the pages and the model that the environment names."""
import json
import os
from pathlib import Path

from haystack import Document, Pipeline, component
from haystack.components.agents import Agent
from haystack.components.builders import AnswerBuilder, ChatPromptBuilder
from haystack.components.generators.chat import OpenAIChatGenerator
from haystack.components.retrievers.in_memory import InMemoryBM25Retriever
from haystack.dataclasses import ChatMessage
from haystack.document_stores.in_memory import InMemoryDocumentStore
from haystack.utils import Secret

store = InMemoryDocumentStore()
store.write_documents([Document(content=page["text"], meta={"title": page["title"]}) for page in map(
    json.loads, Path(os.environ["PAGES"]).read_text().splitlines())])
PROMPT = [ChatMessage.from_user("{% for one in documents %}[{{ loop.index }}] {{ one.content }}\n{% endfor %}"
                                "\nAnswer in a few words. Cite as in [1].\n\nQuestion: {{ question }}")]


def generator():
    return OpenAIChatGenerator(Secret.from_token("none"), "m", api_base_url=os.environ["MODEL_URL"], max_retries=0)


def retrieving():
    """As far as its replies."""
    made = Pipeline()
    made.add_component("retriever", InMemoryBM25Retriever(store, top_k=4))
    made.add_component("prompt", ChatPromptBuilder(PROMPT, required_variables="*"))
    made.add_component("llm", generator())
    made.connect("retriever.documents", "prompt.documents")
    made.connect("prompt.prompt", "llm.messages")
    return made


def answering():
    """With an answer that is cut out of the reply, and the documents that the reply refers to."""
    made = retrieving()
    made.add_component("answers", AnswerBuilder(pattern=r"(.*) \[", reference_pattern=r"\[(\d+)\]"))
    made.connect("llm.replies", "answers.replies")
    made.connect("retriever.documents", "answers.documents")
    return made


@component
class Asking:
    """An agent's messages."""

    @component.output_types(messages=list[ChatMessage])
    def run(self, question: str):
        return {"messages": [ChatMessage.from_user(f"Question: {question}")]}


def agent():
    made = Pipeline()
    made.add_component("asking", Asking())
    made.add_component("agent", Agent(chat_generator=generator()))
    made.connect("asking.messages", "agent.messages")
    return made


@component
class Failing:
    """Knows nothing."""

    @component.output_types(documents=list[Document])
    def run(self, query: str):
        if query.startswith("Which"):
            raise ValueError("this component knows no which")
        return {"documents": []}


failing = Pipeline()
failing.add_component("failing", Failing())
