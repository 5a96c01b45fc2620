"""A static leaderboard of cassettes, each replayed when the page is built: `ragbed leaderboard`."""
