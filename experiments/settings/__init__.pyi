from .run_settings import RunSettings, SubAnswers

__all__ = ["RunSettings", "SubAnswers"]
