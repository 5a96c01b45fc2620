"""What recipes are made of: loops, lists, quotes, votes, and recipes inside recipes."""
