"""Chunkers cut a document's rendering into chunks."""
from typing import Annotated

from pydantic import BeforeValidator, Field

from ragbed.documents.chunkers.sections import Sections
from ragbed.documents.chunkers.sizes import CrestSizes, Fixed, Recursive, Sentences
from ragbed.documents.chunkers.spans import expand_kind

ChunkerSettings = Annotated[CrestSizes | Fixed | Recursive | Sections | Sentences, Field(discriminator="kind"),
                            BeforeValidator(expand_kind)]

__all__ = ["ChunkerSettings", "CrestSizes", "Fixed", "Recursive", "Sections", "Sentences"]
