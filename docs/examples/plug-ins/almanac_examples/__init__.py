"""One small plug-in of each kind."""
