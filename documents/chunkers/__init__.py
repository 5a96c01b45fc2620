"""Chunkers: how a document's rendering is cut into chunks."""
from typing import Annotated

from pydantic import BeforeValidator, Field

from ragbed.documents.chunkers.sections import Sections
from ragbed.documents.chunkers.sizes import CrestSizes, Fixed, Recursive, Sentences
from ragbed.documents.chunkers.spans import by_name

ChunkerSettings = Annotated[CrestSizes | Fixed | Recursive | Sections | Sentences, Field(discriminator="kind"),
                            BeforeValidator(by_name)]

__all__ = ["ChunkerSettings", "CrestSizes", "Fixed", "Recursive", "Sections", "Sentences"]
