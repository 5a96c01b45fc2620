"""Early stopping: a run stops asking a cell once it is significantly worse, or a difference is unlikely."""
