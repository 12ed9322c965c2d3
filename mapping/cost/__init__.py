"""What a placement costs, link by link, and certified bounds on it."""
