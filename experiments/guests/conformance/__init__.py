"""Checks that a strategy keeps the rules that every strategy follows."""
