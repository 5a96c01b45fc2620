"""Guests: optional parts, one sub-package each. The core never imports them; `ragbed/guests.py` lists their additions.
"""
