"""The root of the error tree, and the errors of retrieval.

ToolSearchError
├── BadQueryError           a query that cannot be understood
│   └── BadPatternError     a regular expression that RE2 cannot take
├── MissingExtraError       an optional dependency is not installed
├── EncoderError            a model cannot be loaded or gives unusable vectors
└── IndexStoreError         an index directory cannot be read or written
"""

from __future__ import annotations


class ToolSearchError(Exception):
    """Base class: catch this to catch everything we raise.

    A message is for the person who can act on it. If that is a developer or an operator, models get *model_text*
    instead. It is "" if models may read the message.
    """

    model_text: str = ""
    code: str = "toolsearch_error"  # stable; logged, and sent by the service and the gateway
    status: int = 500  # the HTTP status of the service's answer


class BadQueryError(ToolSearchError, ValueError):
    """The query, its strategy or its limit cannot be used. The message says why, and names usable values."""

    code = "bad_query"
    status = 400


class BadPatternError(BadQueryError):
    """The regular expression is too long, malformed, or uses features that RE2 does not have."""

    code = "bad_pattern"


class MissingExtraError(ToolSearchError, ImportError):
    """A package of an optional extra is missing."""

    code = "missing_extra"
    status = 501
    model_text = "this needs something that is not installed here; go on without it"

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(f"{what} needs packages that are not installed; run: pip install 'toolsearch[{extra}]'")
        self.extra = extra


class EncoderError(ToolSearchError):
    """An encoder's model cannot be loaded, or its vectors break the interface's promises."""

    code = "encoder_error"
    status = 503
    model_text = "searching by meaning does not work at the moment; search by a /pattern/, or by select:NAME"


class IndexStoreError(ToolSearchError):
    """An index directory cannot be read or written."""

    code = "index_store_error"
    model_text = "what is stored of the tools cannot be read at the moment; go on without it, or try again later"
