"""What a search is given, and what it may change."""
