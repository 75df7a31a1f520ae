"""The root of the error tree, and the errors of retrieval."""

from __future__ import annotations

from typing import ClassVar, NamedTuple


class Case(NamedTuple):
    """A code that an error may have instead of the code of its class, and what goes with it."""

    code: str
    status: int
    means: str
    remedy: str


class ToolSearchError(Exception):
    """The base class of all errors.

    A message is for the person who can act on it. If that is a developer or an operator, models get *model_text*
    instead. It is "" if models may read the message. *remedy* is Markdown, for the page of all codes.
    """

    code: str = "toolsearch_error"  # stable; logged, and sent by the service and the gateway
    status: int = 500  # the HTTP status of the service's answer
    remedy: str = "Nothing. toolsearch only raises its subclasses."
    model_text: str = ""
    cases: ClassVar[tuple[Case, ...]] = ()

    def __init_subclass__(cls, *, code: str = "", status: int = 0) -> None:
        """What is left out is that of the class above."""
        super().__init_subclass__()
        cls.code, cls.status = code or cls.code, status or cls.status

    def __init__(self, *message: object, case: Case | None = None) -> None:
        super().__init__(*message)
        if case is not None:
            self.code, self.status, _, self.remedy = case


class BadQueryError(ToolSearchError, ValueError, code="bad_query", status=400):
    """The query, its strategy or its limit cannot be used. The message says why."""

    remedy = "Use one of the values that the message names."


class BadPatternError(BadQueryError, code="bad_pattern"):
    """The pattern is too long, malformed, or uses features that RE2 lacks."""

    remedy = "Write the pattern in RE2's syntax, without look-around and backreferences, or search by words."


class MissingExtraError(ToolSearchError, ImportError, code="missing_extra", status=501):
    """A package of an optional extra is missing."""

    remedy = "Install the extra that the message names: `pip install 'toolsearch[NAME]'`."
    model_text = "this needs something that is not installed here; go on without it"

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(f"{what} needs packages that are not installed; run: pip install 'toolsearch[{extra}]'")
        self.extra = extra


class EncoderError(ToolSearchError, code="encoder_error", status=503):
    """An encoder's model cannot be loaded, or returns invalid vectors."""

    remedy = "Check the model's folder or name. Meanwhile, search with the strategy `keyword`."
    model_text = "searching by meaning does not work at the moment; search by a /pattern/, or by select:NAME"


class IndexStoreError(ToolSearchError, code="index_store_error"):
    """An index directory cannot be read or written."""

    remedy = "Remove the folder. `toolsearch index`, or the next start with `index_dir=`, builds the index again."
    model_text = "what is stored of the tools cannot be read at the moment; go on without it, or try again later"
