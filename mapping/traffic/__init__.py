"""The load of all running jobs on one fabric."""
