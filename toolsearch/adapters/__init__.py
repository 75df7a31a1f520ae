"""toolsearch in agent frameworks: a module each, an extra each."""
