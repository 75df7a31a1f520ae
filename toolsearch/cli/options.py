"""The options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from toolsearch.cli.completion import reach_rules, server_names, source_specs, strategies
from toolsearch.environment import STORE
from toolsearch.errors import BadSettingError


def _known_strategy(given: str | None) -> str | None:
    from toolsearch.setting_values import read_strategy

    try:
        return None if given is None else read_strategy(given)
    except BadSettingError as error:
        raise typer.BadParameter(str(error)) from error


JsonOption: TypeAlias = Annotated[bool, typer.Option("--json", help="Print JSON for programs instead of tables.")]
JsonFileOption: TypeAlias = Annotated[
    Path | None,
    typer.Option("--json-to", metavar="FILE", help="Write what --json prints to this file as well."),
]
IndexOption: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--index",
        metavar="DIR",
        help="A directory made by 'toolsearch index'. Default: the setting index.index_dir, or .toolsearch.",
    ),
]
SettingsOption: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--settings",
        metavar="FILE",
        help="A TOML file of settings, as \\[toolsearch.search]. TOOLSEARCH_* in the environment win over it, and the "
        "options of the command over both. docs/settings.md lists them.",
    ),
]
StoreOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--store",
        metavar="URL",
        envvar=STORE,
        show_envvar=True,
        help="A PostgreSQL database, as postgresql://user@host/name, instead of a SQLite file in the folder. A URL "
        "with a password belongs into the environment, where other users of this machine cannot read it.",
    ),
]
SourceOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--source",
        metavar="SOURCE",
        help="Read this source now, instead of an index. Repeatable.",
        autocompletion=source_specs,
    ),
]
ServerOption: TypeAlias = Annotated[
    str | None,
    typer.Option("--server", metavar="NAME", help="Only tools of this server.", autocompletion=server_names),
]
EncoderOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--encoder",
        metavar="SPEC",
        help="For search by meaning: auto, built-in, transformer, multilingual, a folder with an ONNX model, or a "
        "sentence-transformers model or folder.",
    ),
]
StrategyOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--strategy",
        metavar="NAME",
        help="auto, hybrid, semantic, keyword or regex; auto, hybrid and semantic use an encoder. Default: the setting "
        "index.strategy, auto.",
        autocompletion=strategies,
        callback=_known_strategy,
    ),
]
AllowOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--allow",
        metavar="RULE",
        help="Only these tools: a name, 'git__*', server:NAME, tag:TAG. Repeatable.",
        autocompletion=reach_rules,
    ),
]
DenyOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--deny", metavar="RULE", help="Not these tools; beats --allow.", autocompletion=reach_rules),
]

SOURCES_HELP = (
    "Where tools come from: a Python module (statistics, or module:NAME); a .json, .jsonl or .yaml file with MCP "
    "servers, an OpenAPI 3 document, or a list of tool definitions. NAME=SOURCE names the server of an OpenAPI "
    "document, and puts NAME__ before the names of any other source's tools."
)
