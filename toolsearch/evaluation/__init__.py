"""The quality of search for queries with known right tools: read or proposed, measured, reported, drawn."""

from toolsearch.lazy_names import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
