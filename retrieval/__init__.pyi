from .build import BuildReport, add_to_index, build_index, estimate_index, index_documents, remove_from_index
from .embedders import Nothing, Sentence, Server, Static
from .embedders.opening import open_embedder
from .index import Index
from .index_settings import IndexSettings
from .model_files import find_model
from .pool import Pool
from .rerankers.cross_encoder import CrossEncoding
from .rerankers.reranker import JudgeReranker
from .retrievers import Bm25, Dense, Fused, Reranked, RetrieverSettings
from .types import Hit, Matrix, RerankerDeps, RetrieverKind
from .vector_index import Auto, Flat, Hnsw, RaBitQ, VectorIndex
from .vectors import VectorKind

__all__ = [
    "Auto",
    "Bm25",
    "BuildReport",
    "CrossEncoding",
    "Dense",
    "Flat",
    "Fused",
    "Hit",
    "Hnsw",
    "Index",
    "IndexSettings",
    "JudgeReranker",
    "Matrix",
    "Nothing",
    "Pool",
    "RaBitQ",
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
    "build_index",
    "estimate_index",
    "find_model",
    "index_documents",
    "open_embedder",
    "remove_from_index",
]
