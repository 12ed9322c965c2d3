"""What each page reads from the registry: one object for each page, at most three statements each.

Input: an open registry and the selection in the page's address.
Output: frozen dataclasses.

Objects whose id is computed from their content never change: they are cached (`dashboard.queries.caching`).
Lists are read each time.
"""
