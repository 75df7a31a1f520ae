"""Catalogs of tools: what is written to them, their routes and page, and what they import from."""
