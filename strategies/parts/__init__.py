"""Building blocks of recipes: conversations with searches, reading of short replies, votes, and recipes played in
parallel."""
