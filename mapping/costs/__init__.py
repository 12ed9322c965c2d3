"""What a placement is charged by: distances between hosts, and the load of others."""
