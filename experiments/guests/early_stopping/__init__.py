"""Early stopping: a run asks a cell only until it is significantly worse than another, or a difference is unlikely."""
