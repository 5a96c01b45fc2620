"""A run's records and answers as files for other tools."""
from ragbed.experiments.export.answers import export_answers
from ragbed.experiments.export.destinations import export

__all__ = ["export", "export_answers"]
