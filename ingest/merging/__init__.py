"""Several sources of one moment combined into one, with notes on what they disagree on."""
