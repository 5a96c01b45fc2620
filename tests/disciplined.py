"""Scenes whose documents say something, for strategies that check what is said."""
from functools import partial

from gathering import Scene
from gathering import decisions as decided

__all__ = ["TEXTS", "Told", "decided"]
TEXTS = {"jaws": "Jaws is a film that Steven Spielberg directed in 1975.",
         "spielberg": "Steven Spielberg was born on December 18, 1946, in Cincinnati.",
         "shark": "The great white shark grows up to 6.1 metres long."}
Told = partial(Scene, texts=TEXTS)
