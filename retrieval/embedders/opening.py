"""Opens embedders: from the name that a user writes to settings, and from settings to an embedder."""
from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, get_args

from pydantic import BeforeValidator, Field, TypeAdapter, ValidationError, WrapSerializer

from documents.errors import SettingsError
from retrieval.embedder import Embedder
from retrieval.embedders.base import EmbedderKind
from retrieval.embedders.engines.base import Backend
from retrieval.embedders.sentence import Sentence
from retrieval.embedders.server import Server
from retrieval.embedders.static import Static

if TYPE_CHECKING:
    from pydantic import SerializerFunctionWrapHandler

FORMS = ("a folder or the hub's name of a sentence-transformers model, after bfloat16:, onnx:, openvino: or "
         "openvino_bfloat16: for that backend; static:FOLDER; openai:NAME; http://host/v1#NAME")
_BACKENDS = get_args(Backend)
_SERVERS = ("openai", "http", "https")


def by_name(value: Any) -> Any:
    """The plain settings that a name stands for; whatever is no name as it is, of kind `sentence` unless it says."""
    if isinstance(value, dict) and "kind" not in value:
        return {"kind": "sentence", **value}
    if not isinstance(value, str):
        return value
    form, colon, rest = value.partition(":")
    if not colon:
        return {"kind": "sentence", "model": value}
    if form in _BACKENDS:
        return {"kind": "sentence", "model": rest, "backend": form}
    if form == "static":
        return {"kind": "static", "model": rest}
    if form in _SERVERS:
        return {"kind": "server", "model": value}
    return {"kind": "sentence", "model": value}


def shortest(settings: EmbedderKind, write: SerializerFunctionWrapHandler) -> Any:
    """Settings as they are written: by their name where it says all."""
    return settings.shorthand() or write(settings)


EmbedderSettings = Annotated[
    Annotated[Sentence | Static | Server, Field(discriminator="kind")],
    BeforeValidator(by_name, json_schema_input_type=str | Sentence | Static | Server), WrapSerializer(shortest)]
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
