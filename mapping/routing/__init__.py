"""The links that a message uses; one file per routing, listed in `mapping.routing.catalog`."""
