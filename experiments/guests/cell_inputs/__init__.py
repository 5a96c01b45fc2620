"""What the answers of a cell depend on, as fingerprints, for the report and `ragbed compare`."""
