"""The embedded default: a graph server of this user, started on demand, found by all, stopped when idle."""
