from .build import BuildReport, add_to_index, build_index, estimate_index, index_documents, remove_from_index
from .embedders import Nothing, Sentence, Server, Static
from .embedders.opening import open_embedder
from .index import Index
from .langchain import FromLangChain, as_documents, as_langchain
from .models import find_model
from .pool import Pool
from .rerankers import CrossEncoding, JudgeReranker, LateInteraction
from .rerankers.reranker import RerankerDeps
from .retrievers import Bm25, Dense, Expanded, External, Fused, Mmr, Reranked, RetrieverSettings
from .settings import IndexSettings
from .types import Hit, Matrix, RetrieverKind
from .vector_settings import Auto, Flat, Hnsw, VectorKind
from .vectors import VectorIndex

__all__ = [
    "Auto",
    "Bm25",
    "BuildReport",
    "CrossEncoding",
    "Dense",
    "Expanded",
    "External",
    "Flat",
    "FromLangChain",
    "Fused",
    "Hit",
    "Hnsw",
    "Index",
    "IndexSettings",
    "JudgeReranker",
    "LateInteraction",
    "Matrix",
    "Mmr",
    "Nothing",
    "Pool",
    "Reranked",
    "RerankerDeps",
    "RetrieverKind",
    "RetrieverSettings",
    "Sentence",
    "Server",
    "Static",
    "VectorIndex",
    "VectorKind",
    "add_to_index",
    "as_documents",
    "as_langchain",
    "build_index",
    "estimate_index",
    "find_model",
    "index_documents",
    "open_embedder",
    "remove_from_index",
]
