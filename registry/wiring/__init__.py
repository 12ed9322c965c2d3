"""A fabric over time: what was observed, the graph derived from it, tables, changes between two times."""
