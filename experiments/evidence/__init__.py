"""What each question is shown: conditions placed, searches opened, perturbations, and the gold among it."""
