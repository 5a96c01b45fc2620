"""Settings of embedders, one class per kind, and short names for common settings."""
from __future__ import annotations

from typing import Annotated, Any, Literal, Self

import pydantic
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, TypeAdapter, ValidationError

from ragbed.documents.errors import SettingsError
from ragbed.documents.http import SERVER_SCHEMES
from ragbed.retrieval.model_files import MINILM

_FORMS = ("a folder or hub name of a sentence-transformers model; static:FOLDER; openai:NAME; http://host/v1#NAME; "
          "none")


class EmbedderKind(BaseModel):
    """Settings of an embedder.

    Attributes:
        model: name of the model, as the user wrote it.
        long: how to embed a text that is longer than the model's window. `windows` embeds all parts of it. `truncated`
            embeds only the beginning, as in most published figures.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: str
    model: str
    long: Literal["windows", "truncated"] = "windows"

    def shorthand(self) -> str | None:
        """Return the short name of these settings; None if there is none."""
        raise NotImplementedError


class Sentence(EmbedderKind):
    """A sentence-transformers model, run on the CPU.

    Attributes:
        model: a folder or hub name.
        backend: `onnx` computes vectors with ONNX Runtime, which is fast. `float32` uses PyTorch, which also runs
            models that cannot be exported to ONNX.
        batch: texts computed at once. Default: depends on the backend.
        query_prefix: put in front of each query. Default: the prefix that the model declares or its family expects.
        passage_prefix: put in front of each passage. Default: as for `query_prefix`.
        query_prompt: name of a prompt that the model declares, instead of `query_prefix`.
        passage_prompt: name of a prompt that the model declares, instead of `passage_prefix`.
        normalise: scale vectors to unit length, so that scores are cosines.
        truncate_dim: keep this many numbers of each vector, before it is scaled. Only for models that were trained for
            it (Kusupati et al., "Matryoshka Representation Learning", NeurIPS 2022).
    """

    kind: Literal["sentence"] = "sentence"
    model: str = Field(MINILM, min_length=1)
    backend: Literal["onnx", "float32"] = "onnx"
    batch: int | None = Field(None, ge=1)
    query_prefix: str | None = None
    passage_prefix: str | None = None
    query_prompt: str | None = Field(None, min_length=1)
    passage_prompt: str | None = Field(None, min_length=1)
    normalise: bool = True
    truncate_dim: int | None = Field(None, ge=1)

    @pydantic.model_validator(mode="after")
    def _check_prompts(self) -> Self:
        for text in ("query", "passage"):
            if getattr(self, f"{text}_prompt") is not None and getattr(self, f"{text}_prefix") is not None:
                raise ValueError(f"{text}_prompt and {text}_prefix exclude each other; remove one")
        return self

    def shorthand(self) -> str | None:
        return self.model if self == Sentence(model=self.model) else None


class Static(EmbedderKind):
    """A static model in the format of model2vec or sentence-transformers.

    Attributes:
        model: a folder or hub name.
        window: maximum number of tokens that are averaged; a longer text has several windows.
        query_prefix: put in front of each query.
        passage_prefix: put in front of each passage.
    """

    kind: Literal["static"] = "static"
    model: str = Field(min_length=1)
    window: int = Field(512, ge=32)
    query_prefix: str = ""
    passage_prefix: str = ""

    def shorthand(self) -> str | None:
        return f"static:{self.model}" if self == Static(model=self.model) else None


class Server(EmbedderKind):
    """A model behind an OpenAI-compatible server.

    Attributes:
        model: `openai:NAME` or `http(s)://host/v1#NAME`. The key is read from OPENAI_API_KEY or RAGBED_API_KEY.
        dimensions: length of vectors to request, for models that can shorten them. If None, not sent.
        window: tokens that the server reads of one text. Tokens are estimated from characters, with a safety margin.
        batch: texts per request.
        concurrency: requests in flight at once.
        seconds: deadline of one request, including its retries.
        attempts: maximum number of times a request is sent.
        query_prefix: put in front of each query. Default: the prefix of the model's family, known from its name.
        passage_prefix: put in front of each passage. Default: as for `query_prefix`.
    """

    kind: Literal["server"] = "server"
    model: str
    dimensions: int | None = Field(None, ge=1)
    window: int = Field(8_191, ge=32)
    batch: int = Field(64, ge=1, le=2_048)
    concurrency: int = Field(4, ge=1, le=64)
    seconds: float = Field(120.0, gt=0)
    attempts: int = Field(5, ge=1)
    query_prefix: str | None = None
    passage_prefix: str | None = None

    @pydantic.field_validator("model")
    @classmethod
    def _check_server(cls, model: str) -> str:
        if model.partition(":")[0] not in SERVER_SCHEMES:
            raise ValueError("expected openai:NAME or http://host/v1#NAME")
        return model

    def shorthand(self) -> str | None:
        return self.model if self == Server(model=self.model) else None


class Nothing(EmbedderKind):
    """No embedder, for an index that only `bm25` searches, which is built much faster."""

    kind: Literal["none"] = "none"
    model: Literal["none"] = "none"
    long: Literal["windows"] = "windows"  # the others have no effect

    def shorthand(self) -> str | None:
        return "none"


def _expand_name(value: Any) -> Any:
    """Expand a short name to settings, as a dictionary. Settings without a kind are of kind `sentence`."""
    if isinstance(value, dict) and "kind" not in value:
        return {"kind": "sentence", **value}
    if not isinstance(value, str):
        return value
    form, colon, rest = value.partition(":")
    if value == "none":
        return {"kind": "none"}
    if colon and form == "static":
        return {"kind": "static", "model": rest}
    return {"kind": "server" if colon and form in SERVER_SCHEMES else "sentence", "model": value}


def _write_name(settings: EmbedderKind, write: pydantic.SerializerFunctionWrapHandler) -> Any:
    return settings.shorthand() or write(settings)


EmbedderSettings = Annotated[
    Annotated[Sentence | Static | Server | Nothing, Field(discriminator="kind")],
    BeforeValidator(_expand_name, json_schema_input_type=str | Sentence | Static | Server | Nothing),
    pydantic.WrapSerializer(_write_name)]
_ADAPTER: TypeAdapter[Sentence | Static | Server | Nothing] = TypeAdapter(EmbedderSettings)


def embedder_settings(choice: str | EmbedderKind) -> EmbedderKind:
    """Return the settings for a name. Raises SettingsError if the name has no known form."""
    if isinstance(choice, EmbedderKind):
        return choice
    try:
        return _ADAPTER.validate_python(choice)
    except ValidationError as error:
        raise SettingsError(f"unknown embedder {choice!r}; the forms are: {_FORMS}") from error
