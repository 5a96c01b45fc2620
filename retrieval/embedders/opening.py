"""The one way to open an embedder: by its name or its settings."""
from __future__ import annotations

from pydantic import TypeAdapter, ValidationError

from documents.errors import SettingsError
from retrieval.embedder import Embedder
from retrieval.embedders import EmbedderKind, EmbedderSettings
from retrieval.embedders.naming import FORMS

_ADAPTER: TypeAdapter[EmbedderKind] = TypeAdapter(EmbedderSettings)


def open_embedder(choice: str | EmbedderKind) -> Embedder:
    """The embedder of that name or of these settings. Its model is loaded when first needed.

    Raises:
        SettingsError: the name is none.
        ModelError: the model is nowhere.
        MissingExtra: a package that it needs is not installed.
    """
    return embedder_settings(choice).open()


def embedder_settings(choice: str | EmbedderKind) -> EmbedderKind:
    """The settings that a name stands for; settings as they are. SettingsError where the name is none."""
    if isinstance(choice, EmbedderKind):
        return choice
    try:
        return _ADAPTER.validate_python(choice)
    except ValidationError as error:
        raise SettingsError(f"embedder {choice!r} is not understood; the forms are: {FORMS}") from error


def choice_of(embedder: Embedder) -> EmbedderKind | None:
    """The settings that open this embedder again, with what they leave to the model said outright.

    None for an embedder that no settings opened.
    """
    settings = getattr(embedder, "settings", None)
    return settings.resolved() if isinstance(settings, EmbedderKind) else None
