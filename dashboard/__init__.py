"""Pages that show the registry in a browser."""
