"""How evidence becomes an answer."""
