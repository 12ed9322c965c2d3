"""From the present placement to a better one by few moves."""
