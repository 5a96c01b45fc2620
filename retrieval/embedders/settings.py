"""Settings of embedders: one model a kind, and the names that stand for usual settings. The union of the kinds is the
registry; `retrieval.embedders.opening` opens what they name."""
from __future__ import annotations

from typing import Annotated, Any, Literal, get_args

import pydantic
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, TypeAdapter, ValidationError

from ragbed.documents.errors import SettingsError
from ragbed.documents.http import SERVER_SCHEMES
from ragbed.retrieval.models.finding import MINILM

Backend = Literal["onnx", "float32", "bfloat16", "openvino", "openvino_bfloat16"]

FORMS = ("a folder or the hub's name of a sentence-transformers model, after float32:, bfloat16:, openvino: or "
         "openvino_bfloat16: for that backend; static:FOLDER; openai:NAME; http://host/v1#NAME; none")


class EmbedderKind(BaseModel):
    """Settings of an embedder: small, frozen and closed.

    Attributes:
        model: as the user names it.
        long: what becomes of a text that is longer than the model reads. By `windows` every part of it is embedded;
            `truncated`, its beginning stands for it, as in most published figures.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: str
    model: str
    long: Literal["windows", "truncated"] = "windows"

    def shorthand(self) -> str | None:
        """Return the name that alone stands for these settings; None where they say more than a name can."""
        raise NotImplementedError


class Sentence(EmbedderKind):
    """A sentence-transformers model on the processor.

    Attributes:
        model: a folder, or the hub's name.
        backend: what computes the vectors: ONNX Runtime in float32 (`onnx`), PyTorch in `float32` or `bfloat16`,
            OpenVINO in float32 (`openvino`) or in bfloat16 where the processor has it (`openvino_bfloat16`).
        batch: texts that are computed at once; None for what suits the backend.
        query_prefix: in front of each query; None for what the model declares, or its family demands.
        passage_prefix: likewise in front of each passage.
        normalise: whether vectors are brought to unit length, so that scores are cosines.
    """

    kind: Literal["sentence"] = "sentence"
    model: str = Field(MINILM, min_length=1)
    backend: Backend = "onnx"
    batch: int | None = Field(None, ge=1)
    query_prefix: str | None = None
    passage_prefix: str | None = None
    normalise: bool = True

    def shorthand(self) -> str | None:
        if self != Sentence(model=self.model, backend=self.backend):
            return None
        return self.model if self.backend == "onnx" else f"{self.backend}:{self.model}"


class Static(EmbedderKind):
    """A static model as model2vec and sentence-transformers write it.

    Attributes:
        model: its folder, or the hub's name.
        window: tokens that are averaged at most; a longer text is several windows.
        query_prefix: in front of each query.
        passage_prefix: in front of each passage.
    """

    kind: Literal["static"] = "static"
    model: str = Field(min_length=1)
    window: int = Field(512, ge=32)
    query_prefix: str = ""
    passage_prefix: str = ""

    def shorthand(self) -> str | None:
        return f"static:{self.model}" if self == Static(model=self.model) else None


class Server(EmbedderKind):
    """A model that a server embeds with.

    Attributes:
        model: `openai:NAME` or `http(s)://host/v1#NAME`. The key comes from OPENAI_API_KEY or RAGBED_API_KEY.
        dimensions: sent with each request, for models that can shorten their vectors; None sends none.
        window: tokens that the server takes of one text. Where its tokenizer is not known they are estimated from the
            characters, rather too many than too few.
        batch: texts of one request.
        concurrency: requests that are open at once.
        seconds: deadline of one request with all its attempts.
        attempts: requests sent before a failure is final.
        query_prefix: in front of each query; None for what the family of the model's name demands.
        passage_prefix: likewise in front of each passage.
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
    def _of_a_server(cls, model: str) -> str:
        if model.partition(":")[0] not in SERVER_SCHEMES:
            raise ValueError("expected openai:NAME or http://host/v1#NAME")
        return model

    def shorthand(self) -> str | None:
        return self.model if self == Server(model=self.model) else None


class Nothing(EmbedderKind):
    """No model: an index that `bm25` alone searches, made in no time."""

    kind: Literal["none"] = "none"
    model: Literal["none"] = "none"

    def shorthand(self) -> str | None:
        return "none"


def by_name(value: Any) -> Any:
    """Return the plain settings that a name stands for; settings without a kind are of kind `sentence`."""
    if isinstance(value, dict) and "kind" not in value:
        return {"kind": "sentence", **value}
    if not isinstance(value, str):
        return value
    form, colon, rest = value.partition(":")
    if colon and form in get_args(Backend):
        return {"kind": "sentence", "model": rest, "backend": form}
    if value == "none":
        return {"kind": "none"}
    if colon and form == "static":
        return {"kind": "static", "model": rest}
    return {"kind": "server" if colon and form in SERVER_SCHEMES else "sentence", "model": value}


def shortest(settings: EmbedderKind, write: pydantic.SerializerFunctionWrapHandler) -> Any:
    """Write settings by their name where it says all."""
    return settings.shorthand() or write(settings)


EmbedderSettings = Annotated[
    Annotated[Sentence | Static | Server | Nothing, Field(discriminator="kind")],
    BeforeValidator(by_name, json_schema_input_type=str | Sentence | Static | Server | Nothing),
    pydantic.WrapSerializer(shortest)]
_ADAPTER: TypeAdapter[Sentence | Static | Server | Nothing] = TypeAdapter(EmbedderSettings)


def embedder_settings(choice: str | EmbedderKind) -> EmbedderKind:
    """Return the settings that a name stands for; settings as they are. SettingsError where the name is none."""
    if isinstance(choice, EmbedderKind):
        return choice
    try:
        return _ADAPTER.validate_python(choice)
    except ValidationError as error:
        raise SettingsError(f"embedder {choice!r} is not understood; the forms are: {FORMS}") from error
