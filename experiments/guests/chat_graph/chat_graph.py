"""Give an assistant the forms that LangChain and LangGraph expect: a graph over messages, a Runnable and a tool.

    async with Assistant.open(AssistantSettings(index=Path("idx"), model="openai:gpt-4o-mini")) as assistant:
        graph = chat_graph(assistant, InMemorySaver())
        config = {"configurable": {"thread_id": "mine"}}
        state = await graph.ainvoke({"messages": [("user", "Who founded it?")]}, config)
        state["messages"][-1].text  # "Ada Berg [1]."

All need `ainvoke`, in the event loop that opened the assistant."""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, cast

from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage, convert_to_messages
from langchain_core.runnables import Runnable, RunnableLambda
from langchain_core.tools import StructuredTool, ToolException
from langgraph.graph.message import add_messages

from ragbed.agents.graph import State, build_graph, next_turn
from ragbed.agents.session import evidence_of
from ragbed.agents.types import Answer
from ragbed.documents.errors import SettingsError

if TYPE_CHECKING:
    from ragbed.agents.assistant import Assistant
    from ragbed.agents.graph import CompiledGraph
    from ragbed.retrieval.index import Index


class ChatState(State, total=False):
    """State of the graph, with the messages of a chat."""

    messages: Annotated[list[AnyMessage], add_messages]


def chat_graph(assistant: Assistant, checkpointer: Any = None) -> CompiledGraph:
    """Return the graph of an assistant that takes `messages` or a `question`, and returns both `messages` and `answer`.

    The last message of the user is the question, and the messages before it are the conversation. Messages of other
    roles, such as those of tools, are ignored. The answer is a message with the text; its `response_metadata` has the
    `outcome` and the `citations`. If the question failed, the message is empty, and `failure` says why.
    """
    return build_graph(assistant, checkpointer, assistant.made, ChatState, _read_messages,
                       lambda answer: {"messages": [answer_message(answer, assistant.index)]})


def as_runnable(assistant: Assistant) -> Runnable[str, AIMessage]:
    """Return a LangChain Runnable from a question to the message of its answer. If the question fails, it raises
    ToolException."""
    async def answer(question: str) -> AIMessage:
        answered = await assistant.ask(question)
        if answered.failure:
            raise ToolException(answered.failure.message)
        return answer_message(answered, assistant.index)

    return RunnableLambda(answer, name="ragbed")


def as_tool(assistant: Assistant, name: str, description: str) -> StructuredTool:
    """Return a LangChain tool that answers a question, for an agent such as that of `create_agent`.

    Its result is the text with the cited files below, and its artifact the message of `as_runnable`. If the question
    fails, the result is the reason, with the status `error`.
    """
    runnable = as_runnable(assistant)

    async def ask(question: str) -> tuple[str, AIMessage]:
        message = await runnable.ainvoke(question)
        cited = {one["number"]: one["source"] for one in message.response_metadata["citations"]}
        return "\n".join([message.text, *(f"[{number}] {source}" for number, source in cited.items())]), message

    return StructuredTool.from_function(coroutine=ask, name=name, description=description,
                                        response_format="content_and_artifact", handle_tool_error=True)


def answer_message(answer: Answer, index: Index) -> AIMessage:
    """Return an answer as a message, with its citations in order of first mention as metadata."""
    return AIMessage(answer.text, name="ragbed", response_metadata={
        "outcome": answer.outcome, "failure": answer.failure.message if answer.failure else None, "citations": [
            {"number": passage.number, "chunk": passage.chunk.id, "source": index.source_of(passage.chunk.document),
             "pages": list(passage.chunk.pages) if passage.chunk.pages else None, "text": passage.chunk.content}
            for passage in evidence_of(answer)]})


def _read_messages(state: ChatState) -> State:
    """Return the update that starts the next question: that of the last message, or else the field `question`."""
    messages: list[BaseMessage] = convert_to_messages(cast("list[Any]", state.get("messages", [])))
    if messages and isinstance(messages[-1], HumanMessage):
        text = messages[-1].text
        if not text.strip():
            raise SettingsError("messages: the last message has no text")
        return {"question": text, "asked": text, "turns": _turns(messages[:-1]), "results": [], "answer": {}}
    started = next_turn(state)
    return cast(State, {**started, "messages": [HumanMessage(state["question"])]}) if started else started


def _turns(messages: Sequence[BaseMessage]) -> list[dict[str, str]]:
    """Return the questions before the last one, each with the last reply to it; empty if there is none."""
    turns: list[dict[str, str]] = []
    for message in messages:
        if isinstance(message, HumanMessage) and message.text.strip():
            turns.append({"question": message.text, "answer": ""})
        elif isinstance(message, AIMessage) and turns and message.text:
            turns[-1]["answer"] = message.text
    return turns
