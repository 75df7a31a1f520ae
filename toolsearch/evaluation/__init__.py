"""How good the search is on queries whose right tools are known: read or proposed, measured, reported, drawn."""
