"""A whole registry as one file, and back."""
