"""Questions from tables, hub data sets, and other tools' files."""
