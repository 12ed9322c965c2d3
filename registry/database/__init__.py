"""The connection to the graph database, its schema and its encodings."""
