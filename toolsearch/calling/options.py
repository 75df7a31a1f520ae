"""How a manager runs calls: times and sizes that hold for every tool."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Annotated

from pydantic import Field

from toolsearch.errors import BadSettingError
from toolsearch.setting_values import Count, Seconds


@dataclass(frozen=True, slots=True)
class CallOptions:
    """How a manager runs calls. Raises BadSettingError for a number that is not above 0."""

    timeout_s: Annotated[Seconds, Field(description="Time for one call of a tool that sets no time of its own.")] = 60.0
    max_parallel: Annotated[Count, Field(description="Calls of one reply that run at once; the others wait.")] = 16
    max_threads: Annotated[
        Count, Field(description="Plain functions that run at once on one event loop; the others wait.")
    ] = 64
    max_result_characters: Annotated[
        Count, Field(description="Characters of text in one result; the rest is cut off, and the result says so.")
    ] = 100_000

    def __post_init__(self) -> None:
        for field in fields(CallOptions):
            if not getattr(self, field.name) > 0:
                raise BadSettingError(f"{field.name} must be more than 0, got {getattr(self, field.name)}")
