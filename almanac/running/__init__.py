"""``almanac run``: start a launcher so that each rank runs where it is placed."""
