"""Port counters: one file a format."""
