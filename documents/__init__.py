"""ragbed: documents. Files and pages become documents, documents become chunks."""
from documents.chunkers import ChunkerSettings, CrestSizes, Fixed, Sections
from documents.errors import (
    BenchmarkError,
    BudgetSpent,
    CallError,
    CallTimeout,
    CallTooLong,
    DocumentError,
    IndexFolderError,
    MissingExtra,
    ModelError,
    RagbedError,
    RecipeFailed,
    RecipeMismatch,
    ReplayMiss,
    RunError,
    ScriptEnded,
    SettingsError,
    UserError,
)
from documents.parse import parse_document
from documents.sources import Source, find_sources, unread_files
from documents.tables import SourceTable, TableCell, TableRow, tables_of
from documents.types import FORMATS, Chunk, Chunker, Document, Format, Page, digest
from documents.workers import read_document, read_documents

__distribution__ = "ragbed"

__all__ = [
    "FORMATS",
    "BenchmarkError",
    "BudgetSpent",
    "CallError",
    "CallTimeout",
    "CallTooLong",
    "Chunk",
    "Chunker",
    "ChunkerSettings",
    "CrestSizes",
    "Document",
    "DocumentError",
    "Fixed",
    "Format",
    "IndexFolderError",
    "MissingExtra",
    "ModelError",
    "Page",
    "RagbedError",
    "RecipeFailed",
    "RecipeMismatch",
    "ReplayMiss",
    "RunError",
    "ScriptEnded",
    "Sections",
    "SettingsError",
    "Source",
    "SourceTable",
    "TableCell",
    "TableRow",
    "UserError",
    "digest",
    "find_sources",
    "parse_document",
    "read_document",
    "read_documents",
    "tables_of",
    "unread_files",
]
