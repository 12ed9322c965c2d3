"""What is wrong with a fabric: one file a check, all of them in ``catalog``."""
