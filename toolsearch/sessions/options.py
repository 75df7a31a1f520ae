"""How every session of an engine behaves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, TypeAlias, get_args

from pydantic import Field

from toolsearch.discovery.answers import ANSWER_TOKENS
from toolsearch.discovery.discovered_tools import Budget
from toolsearch.discovery.pass_through import PassThrough
from toolsearch.discovery.search_tool import DEFAULT_LIMIT, MAX_LIMIT
from toolsearch.errors import BadSettingError
from toolsearch.setting_types import Count, Share, Wait
from toolsearch.wire.capabilities import RevealSetting

MAX_HINT = 400
SearchHint: TypeAlias = Annotated[
    str, Field(max_length=MAX_HINT, description="Your text, added at the end of the search tool's description.")
]
AnswerTokens: TypeAlias = Annotated[Count, Field(description="Token limit of one search answer.")]


@dataclass(frozen=True, slots=True)
class AnswerOptions:
    """The contents of the search tool's definition and of its answers. Scores are from 0 to 1.

    *max_limit* bounds the tools in one answer, however many the model asks for. It is at least *limit*: a greater
    *limit* raises it, and a *max_limit* below the default *limit* lowers *limit*.
    """

    limit: Annotated[
        Count, Field(description="Number of tools in one search answer, unless the model asks for another number.")
    ] = DEFAULT_LIMIT
    max_limit: int = MAX_LIMIT
    min_score: Annotated[Share, Field(description="Tools with a lower score (0 to 1) are not found.")] = 0.0
    answer_tokens: AnswerTokens = ANSWER_TOKENS
    search_hint: SearchHint = ""

    def __post_init__(self) -> None:
        for name in ("limit", "max_limit", "answer_tokens"):
            if getattr(self, name) < 1:
                raise BadSettingError(f"{name} must be 1 or more, got {getattr(self, name)}")
        if len(self.search_hint) > MAX_HINT:
            raise BadSettingError(f"search_hint has {len(self.search_hint)} characters; at most {MAX_HINT} are allowed")
        if not 0 <= self.min_score <= 1:
            raise BadSettingError(f"min_score must be from 0 to 1; got {self.min_score}")
        if self.limit == DEFAULT_LIMIT:
            object.__setattr__(self, "limit", min(self.limit, self.max_limit))
        object.__setattr__(self, "max_limit", max(self.limit, self.max_limit))


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchOptions(AnswerOptions):
    """The number of results, how they reach the model, and whether a call needs a search first.

    *cache_ttl_s* counts from the last request. A list in append mode does not shrink for so long.
    """

    expand_undiscovered: Annotated[
        bool,
        Field(description="Run a tool even if no search has found it; false: refuse the call."),
    ] = True
    exposure: Annotated[
        RevealSetting, Field(description="How found tools are shown to the model; auto: a way that its API supports.")
    ] = "auto"
    name_servers: bool = False  # in the search tool's description, in up to 80 characters
    cache_ttl_s: Annotated[
        Wait | None,
        Field(description="How long the model's provider caches a prompt; none: the known time for the model."),
    ] = None

    def __post_init__(self) -> None:
        super(SearchOptions, self).__post_init__()  # a class with slots is made twice, so plain super() fails
        if self.exposure not in get_args(RevealSetting):
            raise BadSettingError(
                f"exposure must be one of {', '.join(get_args(RevealSetting))}; got {self.exposure!r:.80}"
            )
        if self.cache_ttl_s is not None and not self.cache_ttl_s >= 0:
            raise BadSettingError(f"cache_ttl_s must be 0 or more, or None for the known time; got {self.cache_ttl_s}")


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionOptions(SearchOptions):
    """The behaviour of every session of an engine: its searches, its budget, and the catalogs that are shown whole.

    *anticipate* shows a tool that the user's words surely ask for before the model searches for it, where that pays.
    """

    budget: Budget = Budget()  # noqa: RUF009  frozen
    pass_through: PassThrough = PassThrough()  # noqa: RUF009  frozen
    anticipate: bool = True
