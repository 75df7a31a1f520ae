"""Toolsets: named subsets of catalogs, with versions; their routes and pages."""
