"""How evidence is gathered."""
