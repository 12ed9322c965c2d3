"""A web application that shows the contents of the registry."""
