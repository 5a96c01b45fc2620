"""Chunkers: how a document's rendering is cut into chunks."""
from typing import Annotated

from pydantic import BeforeValidator, Field

from documents.chunkers.crest import Crest
from documents.chunkers.fixed import Fixed
from documents.chunkers.recursive import Recursive
from documents.chunkers.sections import Sections
from documents.chunkers.sentences import Sentences
from documents.chunkers.spans import by_name

ChunkerSettings = Annotated[Crest | Fixed | Recursive | Sections | Sentences, Field(discriminator="kind"),
                            BeforeValidator(by_name)]

__all__ = ["ChunkerSettings", "Crest", "Fixed", "Recursive", "Sections", "Sentences"]
