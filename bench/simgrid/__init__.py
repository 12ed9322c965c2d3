"""Do simulated times agree with SimGrid's, for the same flows over the same links?"""
