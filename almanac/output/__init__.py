"""Printing: tables, JSON documents, CSV, notes and progress bars."""
