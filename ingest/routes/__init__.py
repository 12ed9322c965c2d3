"""Forwarding tables: one file a format."""
