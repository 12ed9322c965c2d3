"""The demonstration: a registry filled with real and generated data."""
