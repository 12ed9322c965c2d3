"""Everything that is stored: one module per kind, with its statements and its rules."""
