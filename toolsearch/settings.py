"""Settings: one frozen object, read once from the environment and a TOML file, and passed down from there.

In the environment a setting is ``TOOLSEARCH_<SECTION>__<NAME>``. In the file it is ``name`` in the table
``[toolsearch.section]``, or ``[tool.toolsearch.section]`` of a pyproject.toml. The environment wins.

The text ``none`` stands for None, a duration is ``30m``, ``1h30m``, ``500ms`` or a number of seconds, a list is ``a,b``
or JSON, and a table is JSON. An entry of a table can be given by itself:
``TOOLSEARCH_LIMITS__PER_TOOL_OVERRIDES__<tool>``. `Settings.documented` lists all settings.

Where code has an object of options for a section, such as `Budget` or `CallLimits`, the section is that object.
A setting has the name of the option in code.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Self, TypeAlias

from pydantic import Field

from toolsearch.calling.limits import CallLimits
from toolsearch.calling.options import CallOptions
from toolsearch.chat.advisor import CONVERSATION_ID, TOOL_LOOP_ORDER
from toolsearch.discovery.discovered import Budget
from toolsearch.discovery.pass_through import PassThrough
from toolsearch.environment import NESTED, PREFIX
from toolsearch.sessions.eviction import MAX_SESSIONS
from toolsearch.sessions.options import SearchOptions
from toolsearch.setting_fields import settings_in
from toolsearch.setting_sections import SettingsSection
from toolsearch.setting_sources import GivenSettings
from toolsearch.setting_values import Count, Folder, Seconds, StrategyName
from toolsearch_indexes.encoders.opening import AUTO

__all__ = [
    "AdvisorSettings",
    "CallingSettings",
    "EvictionSettings",
    "IndexSettings",
    "RankingSettings",
    "SettingRow",
    "Settings",
    "TelemetrySettings",
]

_Order: TypeAlias = Annotated[int, Field(description="Place of the tool loop among the advisors; lower wraps higher.")]


class RankingSettings(SettingsSection):
    """What tools are searched with."""

    strategy: StrategyName = Field(
        default="auto", description="What ranks; auto is hybrid where there is an encoder, else keyword."
    )
    encoder: str | None = Field(
        default=AUTO,
        description="auto (transformer where it is installed, else built-in), built-in, transformer, multilingual, a "
        "folder, or a sentence-transformers model; hybrid and semantic need one.",
    )
    reader: str = Field(
        default=AUTO,
        description="auto (the reader whose weights are installed, if they are), none, or a folder: reads the first "
        "tools of an answer again, beside the request.",
    )
    requests: bool = Field(
        default=True,
        description="Find widely used tools also by what their users ask for, which ships with the package.",
    )
    requests_files: tuple[Path, ...] = Field(
        default=(),
        description="Files of toolsearch enrich: what users of your own tools ask for. They go before what ships.",
    )


class IndexSettings(RankingSettings):
    """What tools are searched with, and where that is kept."""

    index_dir: Folder | None = Field(
        default=None, description="Where the index is kept between starts; none: in memory."
    )


class AdvisorSettings(SettingsSection):
    """Tool search in the chat client."""

    enabled: bool = Field(default=False, description="Search for tools, in place of sending the model all of them.")
    system_suffix: str | None = Field(
        default=None, description="Added to the system text; none: a short default; empty: nothing."
    )
    accumulate: bool = Field(
        default=True,
        description="Show what all searches found; else what the last ones found, which costs the prompt cache.",
    )
    search_first: bool = Field(
        default=False, description="Search by what the user says before the model is asked, too."
    )
    session_id_key: Annotated[str, Field(min_length=1)] = Field(
        default=CONVERSATION_ID, description="Where the request's context has the id of the session."
    )
    order: _Order = TOOL_LOOP_ORDER


class EvictionSettings(SettingsSection):
    """Which sessions are forgotten."""

    max_sessions: Count = Field(
        default=MAX_SESSIONS, description="Sessions kept; the least recently used one goes first."
    )
    ttl_s: Seconds | None = Field(
        default=None, description="How long a session may be idle; none: as long as it likes."
    )


@dataclass(frozen=True, slots=True)
class CallingSettings(CallOptions):
    """How tools are called."""

    enabled: Annotated[
        bool, Field(description="Let the chat client run tool calls; else they are handed to the caller.")
    ] = True
    order: _Order = TOOL_LOOP_ORDER
    always_raise: Annotated[bool, Field(description="Raise when a tool fails; else the model reads why.")] = False
    resolution_fallback: Annotated[
        bool, Field(description="Run a tool that a resolver knows although it is not attached to the request.")
    ] = False


class TelemetrySettings(SettingsSection):
    """What OpenTelemetry is told, where it is set up."""

    capture_content: bool = Field(default=False, description="Record queries, arguments, results and messages too.")
    capture_definitions: bool = Field(default=False, description="Record the descriptions and schemas of tools too.")


class Settings(SettingsSection):
    """Everything that an operator may change. No secret is among it, so that it may be shown and logged."""

    index: IndexSettings = IndexSettings()
    search: SearchOptions = SearchOptions()
    advisor: AdvisorSettings = AdvisorSettings()
    eviction: EvictionSettings = EvictionSettings()
    budget: Budget = Budget()
    pass_through: PassThrough = PassThrough()
    calling: CallingSettings = CallingSettings()
    limits: CallLimits = CallLimits()
    telemetry: TelemetrySettings = TelemetrySettings()

    @classmethod
    def from_environment(
        cls,
        environ: Mapping[str, str],
        file: str | Path | None = None,
        *,
        overrides: Mapping[str, Any] | None = None,
    ) -> Self:
        """Read the settings; what neither *environ* nor *file* names has its default.

        *overrides*, by section.name, win over both: what the options of a command say. None leaves a setting as it is.

        Raises BadSettingError, with every problem at once, for a name that there is not, with those that are near,
        and for a value that cannot be used; and for a file that cannot be read.
        """
        given = GivenSettings(settings_in(cls))
        if file is not None:
            given.add_file(Path(file))
        given.add_environment(environ)
        given.add_values(overrides or {})
        return given.build(cls)

    @classmethod
    def documented(cls) -> list[SettingRow]:
        """Describe every setting, in order."""
        return [
            SettingRow(
                name=setting.name,
                variable=PREFIX + setting.name.replace(".", NESTED).upper(),
                values=setting.values,
                default=setting.default,
                description=setting.description,
            )
            for setting in settings_in(cls)
        ]


@dataclass(frozen=True, slots=True)
class SettingRow:
    """One setting, as text for people. *name* is section.name, as in the file."""

    name: str
    variable: str
    values: str
    default: str
    description: str
