"""The quality of search for queries with known right tools: read or proposed, measured, reported, drawn."""
