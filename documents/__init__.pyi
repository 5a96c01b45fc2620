from .chunkers import ChunkerSettings, CrestSizes, Fixed, Sections
from .errors import (
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
from .parse import parse_document
from .sources import Source, find_sources, unread_files
from .tables import SourceTable, TableCell, TableRow, tables_of
from .types import FORMATS, Chunk, Chunker, Document, Format, Page, digest
from .workers import read_document, read_documents

__distribution__: str

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
