"""Port counters: sweeps, growth between two, roll-ups."""
