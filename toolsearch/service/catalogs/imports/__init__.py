"""What catalogs import from: OpenAPI documents, listings and MCP servers.

sources.py    the sources of catalogs, as records with sealed credentials; how the tools of one source are replaced
importing.py  one import, from the document to the index
servers.py    MCP servers as sources: each is connected while its catalog is in memory
imports.py    adds, refreshes and deletes sources; each import is a job
routes.py     ``/v1/catalogs/{catalog}/sources`` and ``/v1/jobs``
page.py       the page of imports
"""
