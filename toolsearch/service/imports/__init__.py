"""What catalogs import from: OpenAPI documents, listings and MCP servers.

sources.py   the sources of catalogs, as records; their credentials are sealed
fetching.py  documents behind URLs
reading.py   a document as rows of the store
exchange.py  the rows of one source exchanged for new ones, in one transaction
imports.py   all of it, as jobs
"""
