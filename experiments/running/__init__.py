"""Carry out a run: plan and check it, ask every question in every cell, and summarise the records."""
