"""ragbed: documents. Files and pages become documents, documents become chunks."""
from documents.chunkers import ChunkerSettings, CrestSizes, Fixed, Sections
from documents.errors import DocumentError
from documents.parse import parse_document
from documents.sources import Source, find_sources
from documents.types import FORMATS, Chunk, Chunker, Document, Format, Page, digest
from documents.workers import read_document, read_documents

__distribution__ = "ragbed"

__all__ = ["FORMATS", "Chunk", "Chunker", "ChunkerSettings", "CrestSizes", "Document", "DocumentError", "Fixed",
           "Format", "Page", "Sections", "Source", "digest", "find_sources", "parse_document", "read_document",
           "read_documents"]
