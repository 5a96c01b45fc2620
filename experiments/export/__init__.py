"""Export a run's records and answers to files for other tools."""

from ragbed.experiments.export.destinations import export, export_answers

__all__ = ["export", "export_answers"]
