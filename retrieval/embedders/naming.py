"""From the name that a user writes for an embedder to its settings, and back."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, get_args

from retrieval.embedders.engines.base import Backend

if TYPE_CHECKING:
    from pydantic import SerializerFunctionWrapHandler

    from retrieval.embedders.base import EmbedderKind

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
