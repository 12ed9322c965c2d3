"""A question with its files or records, and the answer as it is told."""
