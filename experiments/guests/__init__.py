"""Guests: optional parts, one sub-package each. The core never imports them; `ragbed/built_in.py` lists what they add.
"""
