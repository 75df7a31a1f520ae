"""toolsearch: one small search tool in front of any number of tools.

What is public is importable from here, and from `toolsearch.chat`, `toolsearch.wire`, `toolsearch.gateway`,
`toolsearch.evaluation`, `toolsearch.errors`, `toolsearch.client` and `toolsearch.adapters`; `docs/api.md` says of each
name what it is for. Everything is imported when it is first used, so that ``import toolsearch`` costs nothing.
"""

from toolsearch.lazy_names import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
