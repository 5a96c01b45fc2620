from .run import RunSettings, SubAnswers

__all__ = ["RunSettings", "SubAnswers"]
