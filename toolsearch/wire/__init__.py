"""The formats of model APIs and of MCP: one module for each, in both directions. Nothing else knows a format."""

from toolsearch.lazy_names import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
