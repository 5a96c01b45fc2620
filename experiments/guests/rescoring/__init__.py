"""Score a finished run again, from its records: `ragbed rescore` and `ragbed verify`."""
