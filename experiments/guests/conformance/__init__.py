"""Check that a strategy follows the rules of all strategies."""
