"""Which links a pair's traffic takes: one file a routing, named in ``catalog``."""
