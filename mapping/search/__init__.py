"""The search: members side by side under one limit, the best wins."""
