"""Rescore and verify a finished run from its records: `ragbed rescore` and `ragbed verify`."""
