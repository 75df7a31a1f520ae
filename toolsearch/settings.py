"""Settings: one frozen object, read once from the environment and a TOML file, and passed down from there.

In the environment a setting is ``TOOLSEARCH_<SECTION>__<NAME>``, in the file ``name`` under ``[toolsearch.section]``;
the environment wins. The text ``none`` stands for None, a list is ``a,b`` or JSON, a table is JSON, and an entry of a
table can be given by itself: ``TOOLSEARCH_LIMITS__TOOLS__<tool>``. `Settings.documented` lists them all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, Literal, Self, TypeAlias, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field

from toolsearch.setting_sources import NESTED, PREFIX, GivenSettings, fields_of
from toolsearch_indexes.encoders.opening import BUILT_IN

__all__ = [
    "AdvisorSettings",
    "BudgetSettings",
    "CallingSettings",
    "EvictionSettings",
    "IndexSettings",
    "LimitSettings",
    "PassThroughSettings",
    "SearchSettings",
    "SettingRow",
    "Settings",
    "TelemetrySettings",
]


Count: TypeAlias = Annotated[int, Field(ge=1)]
Natural: TypeAlias = Annotated[int, Field(ge=0)]
Seconds: TypeAlias = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class IndexSettings(_Section):
    """What tools are searched with."""

    strategy: Literal["auto", "hybrid", "semantic", "keyword", "regex"] = Field(
        default="auto", description="What ranks; auto is hybrid where there is an encoder, else keyword."
    )
    encoder: str | None = Field(
        default=BUILT_IN,
        description="built-in, a folder, or the name of a sentence-transformers model; hybrid and semantic need one.",
    )
    directory: Path | None = Field(default=None, description="Where the index is kept between starts; none: in memory.")


class SearchSettings(_Section):
    """What one search gives."""

    limit: Count = Field(default=5, description="Tools in one answer, unless the model asks for another number.")
    max_limit: Count = Field(default=10, description="Tools in one answer, however many the model asks for.")
    min_score: float = Field(
        default=0.0, ge=0, le=1, description="Tools that score less are not found; scores are 0 to 1."
    )
    answer_tokens: Count = Field(default=800, description="Tokens of one answer.")
    expand_undiscovered: bool = Field(
        default=True,
        description="Run a tool in reach that the model calls without having searched for it; else refuse.",
    )


class AdvisorSettings(_Section):
    """Tool search in the chat client."""

    enabled: bool = Field(default=False, description="Search for tools, in place of sending the model all of them.")
    mode: Literal["auto", "native", "append"] = Field(
        default="auto", description="How found tools reach the model: the provider's own way, or appended to the list."
    )
    max_results: Count | None = Field(default=None, description="Tools in one answer by default; none: search.limit.")
    system_suffix: str | None = Field(
        default=None, description="Added to the system text; none: a short default; empty: nothing."
    )
    accumulate: bool = Field(
        default=True, description="Keep what all searches found; else what those of the last round found."
    )
    session_id_key: Annotated[str, Field(min_length=1)] = Field(
        default="conversation_id", description="Where the request's context has the id of the session."
    )
    order: int = Field(default=300, description="Place among the advisors; lower wraps higher.")


class EvictionSettings(_Section):
    """Which sessions are forgotten."""

    max_sessions: Count = Field(default=1_000, description="Sessions kept; the least recently used one goes first.")
    ttl_s: Seconds | None = Field(
        default=None, description="Seconds that a session may be idle; none: as long as it likes."
    )


class BudgetSettings(_Section):
    """What a session may hold of discovered tools between turns."""

    max_tools: Count | None = Field(default=50, description="Tools; none: no bound.")
    max_tokens: Count | None = Field(default=20_000, description="Tokens of their definitions; none: no bound.")
    ttl_s: Seconds | None = Field(
        default=None, description="Seconds that a tool may go unused and unfound; none: no bound."
    )
    low_water: float = Field(
        default=0.75, ge=0, le=1, description="Share of a crossed bound to which tools are evicted."
    )
    max_definition_tokens: Count | None = Field(
        default=8_000, description="Tokens of one definition, which is shortened beyond that; none: no bound."
    )


class PassThroughSettings(_Section):
    """When a catalog is so small that the model is shown all of it. Both bounds have to hold."""

    max_tools: Natural = Field(default=10, description="Tools; 0: always search.")
    max_tokens: Natural = Field(default=1_500, description="Tokens of their definitions.")


class CallingSettings(_Section):
    """How tools are called."""

    enabled: bool = Field(
        default=True, description="Let the chat client run tool calls; else they are handed to the caller."
    )
    order: int = Field(default=300, description="Place of the tool loop among the advisors; lower wraps higher.")
    raise_on_error: bool = Field(default=False, description="Raise when a tool fails; else the model reads why.")
    resolution_fallback: bool = Field(
        default=False, description="Run a tool that a resolver knows although it is not attached to the request."
    )
    timeout_s: Seconds = Field(default=60.0, description="Seconds for one call of a tool that sets no time of its own.")
    max_parallel: Count = Field(default=16, description="Calls of one reply that run at once.")
    max_threads: Count = Field(
        default=64, description="Plain functions that run at once on one event loop; the others wait, unlimited."
    )
    max_result_characters: Count = Field(
        default=100_000, description="Characters of text in one result; the rest is cut."
    )


class LimitSettings(_Section):
    """How many calls one turn may make."""

    per_tool: Natural | None = Field(default=40, description="Calls of one tool; none: no limit.")
    tools: Mapping[str, Natural | None] = Field(
        default_factory=dict[str, int | None], description="Calls of single tools, by name, in place of per_tool."
    )
    excluded: frozenset[str] = Field(default=frozenset(), description="Tools that are neither limited nor counted.")
    repeats: Natural | None = Field(
        default=3,
        description="Identical calls in a row with the same result, with no other call between; none: no limit.",
    )
    repeats_tools: Mapping[str, Natural | None] = Field(
        default_factory=dict[str, int | None], description="The same of single tools, by name, in place of repeats."
    )
    total: Natural | None = Field(default=150, description="Calls of all tools; none: no limit.")
    on_exceeded: Literal["error", "raise"] = Field(
        default="error", description="What a call too many is: an error that the model reads, or one that is raised."
    )


class TelemetrySettings(_Section):
    """What OpenTelemetry is told, where it is set up."""

    include_content: bool = Field(default=False, description="Record queries, arguments, results and messages too.")


class Settings(_Section):
    """Everything that an operator may change. No secret is among it, so that it may be shown and logged."""

    index: IndexSettings = IndexSettings()
    search: SearchSettings = SearchSettings()
    advisor: AdvisorSettings = AdvisorSettings()
    eviction: EvictionSettings = EvictionSettings()
    budget: BudgetSettings = BudgetSettings()
    pass_through: PassThroughSettings = PassThroughSettings()
    calling: CallingSettings = CallingSettings()
    limits: LimitSettings = LimitSettings()
    telemetry: TelemetrySettings = TelemetrySettings()

    @classmethod
    def from_environment(cls, environ: Mapping[str, str], file: str | Path | None = None) -> Self:
        """Read the settings; what neither *environ* nor *file* names has its default.

        Raises BadSettingError, with every problem at once, for a name that there is not, with those that there are,
        nearest first, and for a value that cannot be used; and for a file that cannot be read.
        """
        given = GivenSettings(fields_of(cls))
        if file is not None:
            given.add_file(Path(file))
        given.add_environment(environ)
        return given.build(cls)

    @classmethod
    def documented(cls) -> list[SettingRow]:
        """Describe every setting, in order."""
        return [
            SettingRow(
                name=name,
                variable=PREFIX + name.replace(".", NESTED).upper(),
                values=_values(field.annotation),
                default=_shown(field.get_default(call_default_factory=True)),
                description=field.description or "",
            )
            for name, field in fields_of(cls).items()
        ]


@dataclass(frozen=True, slots=True)
class SettingRow:
    """One setting, as text for people. *name* is section.name, as in the file."""

    name: str
    variable: str
    values: str
    default: str
    description: str


_WORDS = {bool: "true, false", int: "whole number", float: "number", str: "text", Path: "path", NoneType: "none"}


def _values(annotation: Any) -> str:
    """What a value may be, in words."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if annotation in _WORDS:
        return _WORDS[annotation]
    if origin is Literal:
        return ", ".join(arguments)
    if origin is Annotated:
        return _values(arguments[0])
    if origin is frozenset:
        return "list"
    if origin is Mapping:
        return f"table of {_values(arguments[1])}"
    return " or ".join(map(_values, arguments))


def _shown(default: Any) -> str:
    if default is None or isinstance(default, bool):
        return str(default).lower()
    return "" if isinstance(default, Mapping | frozenset) else str(default)
