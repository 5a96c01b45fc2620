"""Use an assistant as a part of programs written with LangChain or LangGraph, and in LangGraph's server and Studio."""
from ragbed.experiments.guests.chat_graph.chat_graph import as_runnable, as_tool, chat_graph

__all__ = ["as_runnable", "as_tool", "chat_graph"]
