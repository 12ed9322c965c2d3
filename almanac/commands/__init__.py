"""The subcommands, a module each or for a few that belong together; heavy imports stay inside functions."""
