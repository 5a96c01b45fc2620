"""Renderings: clean HTML and readable text from one stream of events."""
