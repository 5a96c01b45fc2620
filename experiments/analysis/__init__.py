"""Analyses: functions that turn a finished run into views."""
