"""Chunkers: how a document's rendering is cut into chunks."""
from typing import Annotated

from pydantic import BeforeValidator, Field

from documents.chunkers.crest import Crest
from documents.chunkers.fixed import Fixed
from documents.chunkers.named import by_name
from documents.chunkers.sections import Sections

ChunkerSettings = Annotated[Crest | Fixed | Sections, Field(discriminator="kind"), BeforeValidator(by_name)]

__all__ = ["ChunkerSettings", "Crest", "Fixed", "Sections"]
