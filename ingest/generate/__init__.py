"""Fabrics and applications made by formula, listed in `ingest.generate.catalog`."""
