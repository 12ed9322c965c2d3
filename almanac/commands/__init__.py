"""One module a subcommand; each has a `command`. Heavy imports stay inside the functions."""
