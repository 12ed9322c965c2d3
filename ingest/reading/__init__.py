"""Opening, decompressing and decoding files within limits: all defences against bad input."""
