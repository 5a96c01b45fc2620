"""A run's records and answers as files for other tools."""

from ragbed.experiments.export.destinations import export, export_answers

__all__ = ["export", "export_answers"]
