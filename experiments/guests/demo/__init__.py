"""Try ragbed on bundled questions, with recorded replies."""
