"""Use your own retrievers and those of LangChain in ragbed, and ragbed's retrievers in LangChain."""
from ragbed.experiments.guests.external_retrievers.external import External
from ragbed.experiments.guests.external_retrievers.langchain import FromLangChain, as_documents, as_langchain

__all__ = ["External", "FromLangChain", "as_documents", "as_langchain"]
