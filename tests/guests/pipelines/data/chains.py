"""Chains and graphs of LangChain as users have them, over the pages and the model that the environment names."""
import json
import os
import re
from pathlib import Path
from typing import Annotated

from langchain.agents import create_agent
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda, RunnablePassthrough
from langchain_core.tools import tool
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import MessagesState, StateGraph
from pydantic import BaseModel
from typing_extensions import TypedDict


class Words(Embeddings):
    """Counts of words, by their hash."""

    def embed_query(self, text):
        vector = [0.0] * 1024
        for word in re.findall(r"\w{4,}", text.lower()):
            vector[int.from_bytes(word.encode(), "big") % 1021] += 1.0
        return vector

    def embed_documents(self, texts):
        return list(map(self.embed_query, texts))


store = InMemoryVectorStore(Words())
store.add_documents([Document(page["text"], id=page["title"], metadata={"title": page["title"]}) for page in map(
    json.loads, Path(os.environ["PAGES"]).read_text().splitlines())])
retriever = store.as_retriever(search_kwargs={"k": 4})
model = ChatOpenAI(model="m", base_url=os.environ["MODEL_URL"], api_key="none", max_retries=0)
prompt = ChatPromptTemplate.from_template("{context}\n\nAnswer in a few words. Cite as in [1].\n\nQuestion: {question}")


def numbered(documents):
    return "\n".join(f"[{number}] {one.page_content}" for number, one in enumerate(documents, 1))


to_text = {"context": retriever | numbered, "question": RunnablePassthrough()} | prompt | model | StrOutputParser()
to_message = {"context": retriever | numbered, "question": RunnablePassthrough()} | prompt | model
to_fields = RunnablePassthrough.assign(context=(lambda asked: asked["input"]) | retriever).assign(
    answer=(lambda found: {"context": numbered(found["context"]), "question": found["input"]}) | prompt | model)



class Last(BaseRetriever):
    """The second half of what a retriever finds, as one that reranks."""

    def _get_relevant_documents(self, query, *, run_manager):
        return retriever.invoke(query, config={"callbacks": run_manager.get_child()})[2:]


reranked = {"context": Last() | numbered, "question": RunnablePassthrough()} | prompt | model
by_name = ChatPromptTemplate.from_template("Question: {query}") | model


class Cited(BaseModel):
    answer: str
    citations: list[int]


structured = to_fields | (lambda found: Cited(answer=found["answer"].text.removesuffix(" [1]"), citations=[1]))


@RunnableLambda
async def only_async(question):
    return {"answer": (await to_message.ainvoke(question)).text}


@RunnableLambda
def only_sync(asked):
    documents = retriever.invoke(asked["question"])
    reply = model.invoke(prompt.invoke({"context": numbered(documents), "question": asked["question"]}))
    return {"result": reply.text, "source_documents": documents}


@RunnableLambda
def failing(question):
    if question.startswith("Which"):
        raise ValueError("this chain knows no which")
    return {"steps": 3}


@RunnableLambda
def untold(asked: Words):  # of which no schema can be made
    return asked["question"]


class State(TypedDict):
    question: str
    context: list[Document]
    answer: str


def graph():
    made = StateGraph(State)
    made.add_node("find", lambda state: {"context": retriever.invoke(state["question"])[:3]})
    made.add_node("say", lambda state: {"answer": model.invoke(prompt.invoke(
        {"context": numbered(state["context"]), "question": state["question"]})).text})
    made.add_edge("find", "say").set_entry_point("find")
    return made.compile()


def remembering():
    """Says how many questions it was asked in its thread."""
    made = StateGraph(MessagesState)
    made.add_node("say", lambda state: {"messages": [("ai", f"{len(state['messages'])} message")]})
    made.set_entry_point("say")
    return made.compile(checkpointer=InMemorySaver())


@tool(response_format="content_and_artifact")
def search(query: Annotated[str, "what to look for"]):
    """Find passages."""
    found = store.similarity_search(query, k=4)
    return numbered(found), found


agent = create_agent(model, [search])
