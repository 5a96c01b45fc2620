"""`ragbed run --dry-run`: what a run would cost, and the smallest difference that it could detect."""
