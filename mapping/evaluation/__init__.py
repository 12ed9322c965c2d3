"""What a placement costs, link by link, beside its bounds."""
