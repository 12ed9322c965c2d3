"""The connection to the graph database, its schema and its encodings.

Input: Cypher statements with column parameters; arrays.
Output: rows of results; arrays as versioned bytes.
"""
