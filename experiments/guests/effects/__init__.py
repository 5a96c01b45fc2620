"""Main effects of a run's factors and their interactions, with the command `effects`."""
