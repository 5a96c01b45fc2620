"""Chunkers: how a document's rendering is cut into chunks."""
from typing import Annotated

from pydantic import BeforeValidator, Field

from documents.chunkers.sections import Sections
from documents.chunkers.sizes import CrestSizes, Fixed, Recursive, Sentences
from documents.chunkers.spans import by_name

ChunkerSettings = Annotated[CrestSizes | Fixed | Recursive | Sections | Sentences, Field(discriminator="kind"),
                            BeforeValidator(by_name)]

__all__ = ["ChunkerSettings", "CrestSizes", "Fixed", "Recursive", "Sections", "Sentences"]
