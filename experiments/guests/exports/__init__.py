"""Export a run's records and answers to files for other tools."""
