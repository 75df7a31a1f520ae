"""The options that several commands share, with their shell completion and the reading of their values.

Completion reads an index. It starts and prints nothing.
"""

from __future__ import annotations

import importlib.util
import os
import time
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeAlias

import typer

from toolsearch.cli.gateway_door import own_config
from toolsearch.cli.output import legible, line, stderr, stderr_is_watched, tell, warn
from toolsearch.environment import STORE
from toolsearch.errors import BadSettingError, MissingExtraError, UnknownPriceError

if TYPE_CHECKING:
    from toolsearch.bench.prices import Prices
    from toolsearch.gateway.config_file import ConfigFile
    from toolsearch.gateway.settings import GatewayConfig
    from toolsearch.tools.definition import ToolDefinition
    from toolsearch.wire.capabilities import Endpoint

_LAST_PORT = 65_535


def read_address(text: str, option: str) -> tuple[str, int]:
    """Read ``HOST:PORT``, or ``[::1]:PORT``; ``:PORT`` means loopback. BadSettingError names *option*."""
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdecimal() or int(port) > _LAST_PORT:
        raise BadSettingError(f"{option} needs HOST:PORT, such as 127.0.0.1:8080, not {text!r}")
    return host.strip("[]") or "127.0.0.1", int(port)


DEFAULT_MODELS: Final[Mapping[str, str]] = {
    "anthropic": "claude-sonnet-5-5",
    "openai-responses": "gpt-6.2-sol",
    "openai": "gpt-5.1",  # later models take no tools at Chat Completions while they reason
}

_NAMES: Final = ("input", "output", "cache_read", "cache_write")
_SOURCE: Final = "--prices"


def endpoint_of(wire_format: str | None, model: str | None) -> Endpoint:
    """The endpoint. A missing value follows from the other: Claude models use Anthropic's format, others OpenAI's
    Responses.
    """
    from toolsearch.wire.capabilities import Endpoint

    if wire_format is None:
        wire_format = "openai-responses" if model and "claude" not in model.lower() else "anthropic"
    if wire_format not in DEFAULT_MODELS:
        raise BadSettingError(f"--format must be one of {', '.join(DEFAULT_MODELS)}, not {wire_format!r:.80}")
    return Endpoint(wire_format, model or DEFAULT_MODELS[wire_format])


def prices_for(endpoint: Endpoint, given: str | None) -> Prices:
    """The prices of the model in the table, replaced by those *given*, such as ``input=3,output=15``.

    A model that is not in the table needs at least these two. Cached input costs the same as other input unless its
    price is given. The rules of the cache are those of the format's default model. Raises BadSettingError.
    """
    from toolsearch.bench.prices import prices_of

    own = _read_prices(given) if given is not None else {}
    try:
        known = prices_of(endpoint.model)
    except UnknownPriceError as error:
        if not own:
            known_models = ", ".join(error.known)
            raise BadSettingError(
                f"no price is known for the model {endpoint.model!r:.80}; give --prices input=..,output=.., in dollars "
                f"for a million tokens, or one of these as --model: {known_models}"
            ) from error
        return _of_unknown(prices_of(DEFAULT_MODELS[endpoint.wire_format]), own)
    if not own:
        return known
    source = _SOURCE if len(own) == len(_NAMES) else f"{_SOURCE}; for what it does not name, {known.source}"
    return _with(known, own, source)


def _of_unknown(like: Prices, own: Mapping[str, float]) -> Prices:
    missing = [name for name in ("input", "output") if name not in own]
    if missing:
        raise BadSettingError(f"--prices must have {' and '.join(missing)} for a model that the table does not know")
    of_cache = dict.fromkeys(("cache_read", "cache_write"), own["input"])
    return _with(replace(like, long_cache_write=None, long_prompts=None), {**of_cache, **own}, _SOURCE)


def _with(prices: Prices, own: Mapping[str, float], source: str) -> Prices:
    changes: dict[str, Any] = {**own, "source": source, "looked_up": ""}
    return replace(prices, **changes)


def _read_prices(given: str) -> dict[str, float]:
    read: dict[str, float] = {}
    for part in given.split(","):
        name, _, value = (side.strip() for side in part.partition("="))
        if name not in _NAMES or name in read:
            raise BadSettingError(
                f"--prices takes {', '.join(_NAMES)}, each once, as input=3,output=15; not {part!r:.80}"
            )
        try:
            read[name] = float(value)
        except ValueError:
            raise BadSettingError(f"--prices: {name} must be a number of dollars, not {value!r:.80}") from None
    return read


_MOST_TOOLS = 500  # shells ask before they show more suggestions than some hundreds
_SUFFIXES = (".json", ".jsonl", ".ndjson", ".yaml", ".yml")


def strategies(incomplete: str) -> list[str]:
    from toolsearch_indexes.queries import STRATEGIES

    return _starting(incomplete, STRATEGIES)


def tool_formats(incomplete: str) -> list[str]:
    from toolsearch.wire.formats import TOOL_FORMATS

    return _starting(incomplete, TOOL_FORMATS)


def model_formats(incomplete: str) -> list[str]:

    return _starting(incomplete, DEFAULT_MODELS)


def kinds(incomplete: str) -> list[str]:
    from toolsearch.tools.definition import KINDS

    return _starting(incomplete, KINDS)


def tool_names(ctx: typer.Context, incomplete: str) -> list[str]:
    return _starting(incomplete, [each.name for each in _known(ctx)])[:_MOST_TOOLS]


def server_names(ctx: typer.Context, incomplete: str) -> list[str]:
    return _starting(incomplete, {each.server for each in _known(ctx) if each.server})


def reach_rules(ctx: typer.Context, incomplete: str) -> list[str]:
    known = _known(ctx)
    rules = {f"server:{each.server}" for each in known if each.server}
    rules |= {f"tag:{tag}" for each in known for tag in each.tags}
    rules |= {f"kind:{each.kind}" for each in known if each.kind != "tool"}
    return [*_starting(incomplete, rules), *_starting(incomplete, [each.name for each in known])[:_MOST_TOOLS]]


def arguments(ctx: typer.Context, incomplete: str) -> list[str]:
    """``key=`` for each parameter of the tool that the command line names before."""
    name = ctx.params.get("name")
    tools = [each for each in _known(ctx) if each.name == name]
    return [
        key
        for each in tools
        for key in _starting(incomplete, [f"{key}=" for key in each.input_schema.get("properties", {})])
    ]


def source_specs(incomplete: str) -> list[str]:
    """Files that can be a source, and folders on the way to them; modules of the working directory by name."""
    folder, _, start = incomplete.rpartition(os.sep)
    inside = Path(folder or (os.sep if incomplete.startswith(os.sep) else "."))
    try:
        entries = sorted(inside.iterdir())
    except OSError:
        return []
    front = incomplete[: len(incomplete) - len(start)]
    offered: list[str] = []
    for entry in entries:
        if not entry.name.startswith(start) or (entry.name.startswith(".") and not start):
            continue
        if entry.is_dir():
            offered.append(f"{front}{entry.name}{os.sep}")
        elif entry.suffix.lower() in _SUFFIXES:
            offered.append(f"{front}{entry.name}")
        elif entry.suffix == ".py" and not front and entry.stem.isidentifier():
            offered.append(entry.stem)
    return offered


def _starting(incomplete: str, names: Iterable[str]) -> list[str]:
    return [name for name in dict.fromkeys(sorted(names)) if name.startswith(incomplete)]


def _known(ctx: typer.Context) -> Sequence[ToolDefinition]:
    """The tools of the index that the command line names, or of its sources if these are modules or listings."""
    from toolsearch.errors import ToolSearchError

    try:
        return _read_tools(ctx.params)
    except (ToolSearchError, OSError):
        return ()


def _read_tools(params: dict[str, Any]) -> Sequence[ToolDefinition]:
    from toolsearch.catalog.index_directory import IndexDirectory
    from toolsearch.catalog.loading import open_source
    from toolsearch.catalog.source import LiveSource
    from toolsearch.cli.opening import index_folder, read_settings

    if specs := params.get("source"):
        still = [source for source in map(open_source, specs) if not isinstance(source, LiveSource)]
        return [entry.definition for source in still for entry in source.load().tools]
    folder = index_folder(read_settings(params.get("settings"), index__index_dir=params.get("index")))
    with IndexDirectory(folder).open_catalog() as catalog:
        return [entry.definition for entry in catalog.entries()]


def _known_strategy(given: str | None) -> str | None:
    from toolsearch.setting_types import read_strategy

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
        help="A PostgreSQL database, as postgresql://user@host/name, instead of a SQLite file in the folder. Keep a "
        "URL with a password in the environment: other users of this machine cannot read it there.",
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

KindOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--kind",
        metavar="KIND",
        help="Find only tools, skills, prompts or resources: tool, skill, prompt, resource. Repeatable. Default: tools "
        "and skills.",
        autocompletion=kinds,
    ),
]

AllowOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--allow",
        metavar="RULE",
        help="Only these tools: a name, 'git__*', server:NAME, tag:TAG, kind:skill. Repeatable.",
        autocompletion=reach_rules,
    ),
]

DenyOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--deny", metavar="RULE", help="Leave out these tools; beats --allow.", autocompletion=reach_rules),
]

SOURCES_HELP = (
    "Where tools come from: a Python module (statistics, or module:NAME); a .json, .jsonl or .yaml file with MCP "
    "servers, an OpenAPI 3 document, or a list of tool definitions; skills:FOLDER, skills with a SKILL.md each. "
    "NAME=SOURCE names the server of an OpenAPI document or of skills, and puts NAME__ before the names of any other "
    "source's tools."
)

SourcesArgument: TypeAlias = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="SOURCE...",
        help=f"{SOURCES_HELP} Without a SOURCE, the index is used.",
        autocompletion=source_specs,
    ),
]

_LINE_EVERY_S: Final = 10
SeedOption: TypeAlias = Annotated[int, typer.Option(help="Another seed draws other tools and queries.")]


@contextmanager
def progress_on_stderr(clock: Callable[[], float] = time.monotonic) -> Generator[Callable[[str, int, int], None]]:
    """Show progress: a bar if stderr is a terminal, else a line every ten seconds.

    Yields a function that takes the name of the work, the amount done, and the whole amount.
    """
    from rich.progress import Progress

    with Progress(console=stderr(), transient=True, disable=not stderr_is_watched()) as bar:
        task = bar.add_task("", total=None)
        next_line_s = clock() + _LINE_EVERY_S

        def update(what: str, done: int, total: int) -> None:
            nonlocal next_line_s
            bar.update(task, description=legible(what), completed=done, total=total)
            if bar.disable and clock() >= next_line_s:
                tell(f"{what}: {done:,} of {total:,}")
                next_line_s = clock() + _LINE_EVERY_S

        yield update


ConfigOption: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--config",
        metavar="FILE",
        help="The mcpServers JSON of any MCP client. Default: the file that 'toolsearch gateway import' writes.",
    ),
]


def config_file(path: Path | None) -> ConfigFile:
    """The configuration at *path*, or the gateway's own, with this process's environment."""
    if path is None:
        path = own_config()
        if not path.is_file():
            raise BadSettingError(
                f"name a file of servers by --config mcp.json, or let 'toolsearch gateway import' make {path} from "
                "the servers of your MCP clients"
            )
        stderr().print(line(f"servers of {path}"))
    if importlib.util.find_spec("mcp") is None:
        raise MissingExtraError("the gateway", "mcp")
    from toolsearch.gateway.config_file import ConfigFile

    return ConfigFile(path, os.environ)


def read_config(path: Path | None) -> GatewayConfig:
    """Read that `config_file`, and print its warnings."""
    read = config_file(path).read()
    for warning in read.warnings:
        warn(warning)
    return read
