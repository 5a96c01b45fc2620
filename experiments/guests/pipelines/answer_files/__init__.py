"""Files of answers: one module per tool, which reads and writes its format."""
