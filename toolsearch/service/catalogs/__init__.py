"""Catalogs of tools: writing, routes, the page, and imports."""
