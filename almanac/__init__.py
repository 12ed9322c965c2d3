"""The command line, the settings, and the wiring of all parts."""
