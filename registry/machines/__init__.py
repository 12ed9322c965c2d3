"""Fabrics as of a time, and what is kept beside them: plans, layouts of hosts, drawings."""
