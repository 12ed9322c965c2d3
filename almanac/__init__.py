"""The front door: the command line, settings, and the wiring of all parts."""
