"""Calls of tools: who runs them, their routes, and the page that calls a tool by hand."""
