"""What catalogs import from: OpenAPI documents, listings and MCP servers.

sources.py    the sources of catalogs, as records; their credentials are sealed
new_sources.py  a request for a new source as such a record
fetching.py   documents behind URLs
reading.py    a document as rows of the store
exchange.py   what has to be written so that the rows of a source are others
noting.py     what is written when an import ends
importing.py  one import, from the document to the index
servers.py    the same for an MCP server, which is connected
imports.py    adds, refreshes and deletes sources; each import is a job
making.py     puts them together
"""
