"""What a host is like inside: one file a format."""
