"""File formats: each is one `Format`, listed in `ingest.catalog`."""
