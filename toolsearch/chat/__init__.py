"""Chat: messages, the interface to models, the client, and its advisors."""

from toolsearch.lazy_names import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
