"""The page of all settings, ``docs/settings.md``: made from the settings themselves, so that it cannot go out of date.

To write it anew:

    python -m toolsearch.settings_page > docs/settings.md
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from operator import attrgetter

from pydantic.alias_generators import to_camel

from toolsearch.environment import NESTED, PREFIX
from toolsearch.gateway.settings import SECTION, GatewaySettings
from toolsearch.service.settings import ServiceSettings
from toolsearch.setting_fields import Setting, settings_in
from toolsearch.settings import Settings

_INTRODUCTION = """\
# Settings

The library and the commands of `toolsearch` read the first list, the gateway reads the second, the service reads the
first and the third. A setting has the name of the option that it sets in code: `budget.max_tools` is
`Budget(max_tools=...)`. A name that does not exist is an error.

A duration is `30m`, `1h30m`, `500ms`, or a number of seconds. `none` lifts a bound, or leaves something out.
The strategies `keyword` and `semantic` may also be called `lucene` and `vector`.

This page is generated: change the settings in the code, then run `just settings`.

## Library and command line

Settings come from the environment and from a TOML file, and the environment wins. In code, read them by
`Settings.from_environment(os.environ, "toolsearch.toml")`. On the command line, name the file by `--settings
toolsearch.toml`; the other options of a command win over both. In a `pyproject.toml` the tables are called
`[tool.toolsearch.search]` and so on.

```toml
[toolsearch.search]
limit = 8

[toolsearch.limits.per_tool_overrides]
git__log = 3
```

In the environment a list is `a,b` or JSON, and a table is JSON. An entry of a table can be given by itself:
`TOOLSEARCH_LIMITS__PER_TOOL_OVERRIDES__git__log=3`.
"""

_GATEWAY = """\
## Gateway

The gateway's settings stand in the section `toolsearch` of the file that holds `mcpServers`; the environment does not
change them. Keys may be written as Python writes them, too (`max_tools`). `null` is none.

```json
{
  "mcpServers": {"git": {"command": "uvx", "args": ["mcp-server-git"]}},
  "toolsearch": {"search": {"limit": 8}, "servers": {"git": {"callTimeoutS": "20s"}}}
}
```

`<name>` stands for the name of a principal or of a server; the server `*` holds for all.
"""

_SERVICE = """\
## Service

`toolsearch serve` reads all settings of the library, as above, and these; name the file by `--config toolsearch.toml`.
Secrets are no settings: `TOOLSEARCH_SECRET_KEY` or `TOOLSEARCH_SECRET_KEY_FILE` gives the key by which credentials of
upstream servers are encrypted, and `TOOLSEARCH_STORE` the URL of a PostgreSQL database ([storage](storage.md)).

```toml
[toolsearch.serve]
public_url = "https://tools.example.com"

[toolsearch.quotas]
tools = 20_000
```
"""


def settings_page() -> str:
    """The whole page, in Markdown."""
    return "\n".join(
        [
            _INTRODUCTION,
            *_tables(settings_in(Settings), _variable),
            _GATEWAY,
            *_tables(settings_in(GatewaySettings), _key),
            _SERVICE,
            *_tables(_of_the_service_alone(), _variable),
        ]
    )


def _of_the_service_alone() -> Iterator[Setting]:
    return (each for each in settings_in(ServiceSettings) if each.path[0] not in Settings.model_fields)


def _tables(settings: Iterable[Setting], name: Callable[[Setting], str]) -> Iterator[str]:
    """A table for each section, below its name and what it is about."""
    for section, group in groupby(settings, key=attrgetter("section")):
        rows = list(group)
        title = rows[0].path[0] if len(rows[0].path) > 1 else "general"
        about = " ".join(str(section.__doc__).partition("\n\n")[0].split()).replace("``", "`")
        yield f"### {title.replace('_', ' ').capitalize()}\n\n{about}\n\n| | values | default | |\n|---|---|---|---|"
        for row in rows:
            yield f"| `{name(row)}` | {row.values} | {_code(row.default)} | {row.description} |"
        yield ""


def _variable(setting: Setting) -> str:
    return PREFIX + setting.name.replace(".", NESTED).upper()


def _key(setting: Setting) -> str:
    return ".".join([SECTION, *(part if part == "<name>" else to_camel(part) for part in setting.path)])


def _code(default: str) -> str:
    return f"`{default}`" if default not in ("", "required") else default or "empty"


if __name__ == "__main__":
    sys.stdout.write(settings_page())
