"""Planning: what a run would ask, use and cost, before anything is asked."""
from experiments.planning.plan import plan_run
from experiments.planning.show import show_plan, show_total

__all__ = ["plan_run", "show_plan", "show_total"]
