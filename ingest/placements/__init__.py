"""Where ranks sit, as launchers are told: one file a format."""
