"""Questions on the data of a registry, one module each: a request, its resolved case, a report."""
