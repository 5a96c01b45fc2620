"""The commands. Heavy imports happen only when a command runs."""
