"""Everything by settings: from the environment and a file, without wiring anything in code."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from model import model_or

from toolsearch import Catalog, Settings, ToolSearchError, build_client
from toolsearch.chat import scripted_calls

FILE = """
[toolsearch.advisor]
enabled = true

[toolsearch.search]
limit = 3

[toolsearch.index]
strategy = "keyword"

[toolsearch.limits.per_tool_overrides]
statistics__median = 2
"""


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "toolsearch.toml"
        path.write_text(FILE, encoding="utf-8")
        environment = {"TOOLSEARCH_SEARCH__LIMIT": "1", **os.environ}  # the environment wins
        settings = Settings.from_environment(environment, path)
    limits = settings.limits
    print(settings.advisor.enabled, settings.search.limit, limits.per_tool, dict(limits.per_tool_overrides))

    catalog = Catalog()
    catalog.load("module:statistics")
    model = model_or(
        scripted_calls(("toolSearchTool", {"query": "median of numbers"})),
        scripted_calls(("statistics__median", {"data": [3, 1, 4]})),
        "It is 3.",
    )
    client = build_client(settings, model, tools=[catalog])
    print(client.prompt("The median of 3, 1 and 4?").context(conversation_id="ada").content_sync())

    try:
        Settings.from_environment({"TOOLSEARCH_LIMITS__PER_TOL": "3"})
    except ToolSearchError as error:
        print(str(error).partition("?")[0] + "?")
    for row in Settings.documented()[:2]:
        print(f"{row.variable}={row.default}  ({row.values})")


if __name__ == "__main__":
    main()
