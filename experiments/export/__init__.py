"""A run's records in the forms of other tools."""
from ragbed.experiments.export.destinations import export, export_predictions

__all__ = ["export", "export_predictions"]
