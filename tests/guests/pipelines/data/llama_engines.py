"""Engines of LlamaIndex as users have them, over the pages and the model that the environment names."""
import json
import os
import re
from pathlib import Path

from llama_index.core import Document, VectorStoreIndex
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.base.response.schema import Response
from llama_index.core.chat_engine import CondensePlusContextChatEngine
from llama_index.core.llms import CompletionResponse, CustomLLM, LLMMetadata
from llama_index.core.llms.callbacks import llm_completion_callback
from llama_index.core.memory import ChatMemoryBuffer
from llama_index.core.query_engine import CitationQueryEngine, CustomQueryEngine
from openai import OpenAI


class Words(BaseEmbedding):
    """Counts of words, by their hash."""

    def _get_text_embedding(self, text):
        vector = [0.0] * 1024
        for word in re.findall(r"\w{4,}", text.lower()):
            vector[int.from_bytes(word.encode(), "big") % 1021] += 1.0
        return vector

    _get_query_embedding = _get_text_embedding

    async def _aget_query_embedding(self, query):
        return self._get_text_embedding(query)


class Model(CustomLLM):
    """A model behind OpenAI's interface."""

    @property
    def metadata(self):
        return LLMMetadata()

    @llm_completion_callback()
    def complete(self, prompt, formatted=False, **settings):
        client = OpenAI(base_url=os.environ["MODEL_URL"], api_key="none", max_retries=0)
        with client:
            raw = client.chat.completions.create(model="m", messages=[{"role": "user", "content": prompt}])
        return CompletionResponse(text=raw.choices[0].message.content, raw=raw)

    @llm_completion_callback()
    def stream_complete(self, prompt, formatted=False, **settings):
        whole = self.complete(prompt, formatted)
        yield whole.model_copy(update={"delta": whole.text})


pages = map(json.loads, Path(os.environ["PAGES"]).read_text().splitlines())
index = VectorStoreIndex.from_documents(
    [Document(text=page["text"], doc_id=page["title"]) for page in pages], embed_model=Words())
engine = index.as_query_engine(llm=Model(), similarity_top_k=4)
streaming = index.as_query_engine(llm=Model(), similarity_top_k=4, streaming=True)
citing = CitationQueryEngine.from_args(index, llm=Model(), similarity_top_k=4)


def empty():
    return VectorStoreIndex([], embed_model=Words()).as_query_engine(llm=Model())


def chat():
    return CondensePlusContextChatEngine.from_defaults(
        index.as_retriever(similarity_top_k=4), llm=Model(), memory=ChatMemoryBuffer.from_defaults())


one_chat = chat()


class Failing(CustomQueryEngine):
    """Knows nothing."""

    def custom_query(self, query_str):
        if query_str.startswith("Which"):
            raise ValueError("this engine knows no which")
        return Response(None)


failing = Failing()
