"""A run's records in the forms of other tools."""
from experiments.export.destinations import export

__all__ = ["export"]
