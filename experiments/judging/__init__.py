"""Judging answers: asking a judge, again and by others, and how far they agree."""
