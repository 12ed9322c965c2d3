"""One page a file, reading from top to bottom as the page does; each has a ``draw``."""
