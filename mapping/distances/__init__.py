"""The cost of a byte between two hosts."""
