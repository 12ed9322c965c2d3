"""Who sends how much to whom: one file a format."""
