"""A typed client of the service: the same methods, to be awaited or not."""
