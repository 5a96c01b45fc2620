"""Building blocks of recipes: loops, lists, quotes, votes, and nested recipes."""
