"""Notes on models whose replies are recorded, or that are too small to compare strategies with."""
from __future__ import annotations

from collections.abc import Mapping, Sequence

from ragbed.agents.model_settings import DEFAULT_MODEL, ModelSettings


def note_models(models: Sequence[str], calls: ModelSettings | None = None,
                known: Mapping[str, str] | None = None) -> list[str]:
    """Note models whose replies are recorded, and models with the weights of the small default model. `known` has the
    identities that a run recorded, for models whose weights are not on this machine."""
    from ragbed.agents.cassette import RECORDED, load_recording
    from ragbed.agents.models import resolve_model

    default, calls = resolve_model(DEFAULT_MODEL, calls=False).identity, calls or ModelSettings()
    recorded = [f"The replies of {model} are recorded: "
                f"{', '.join(load_recording(calls.config(model).model).made_with.values())}. "
                "This machine computed the index, searches, scores and report."
                for model in models if calls.config(model).model.startswith(RECORDED)]
    small = [f"{model} has 135 million parameters. Its answers are good only for checking the setup, not for comparing "
             "strategies." for model in models
             if default == resolve_model(model, calls, calls=False, known=(known or {}).get(model)).identity]
    return recorded + small
