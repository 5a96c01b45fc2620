"""Views: breakdowns of a finished run that a benchmark's readers look for."""
from experiments.views.catalogue import VIEWS, view_named, views_of
from experiments.views.types import Material, Value, View

__all__ = ["VIEWS", "Material", "Value", "View", "view_named", "views_of"]
