"""The settings of a run: read, checked, and made into a matrix."""
from experiments.settings.run import RunSettings, SubAnswers

__all__ = ["RunSettings", "SubAnswers"]
