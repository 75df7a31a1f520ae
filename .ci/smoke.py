"""What a user does first with the installed wheel: search, expand, index, search the index, call, and see the demo."""

import asyncio
import subprocess

from toolsearch import Catalog, ToolSearch


def run(*command: str) -> str:
    done = subprocess.run(command, check=True, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    assert done.stdout, f"{command} printed nothing"
    return done.stdout


engine = ToolSearch(Catalog.from_module("statistics"))
best = engine.search("the median of some numbers", limit=5)
assert any("median" in found.name for found in best), best

session = engine.session("smoke")
asyncio.run(session.call("toolSearchTool", {"query": "the median of some numbers"}))
assert session.tools(format="openai"), "no tools to send"

run("toolsearch", "index", "statistics")
assert "statistics__median" in run("toolsearch", "search", "the median of some numbers")
assert run("toolsearch", "call", "statistics__median", '{"data": [3, 1, 4, 1, 5]}') == "3\n"
assert "pip install 'toolsearch[service]'" in run("sh", "-c", "toolsearch serve 2>&1 || true")
print(run("toolsearch", "demo"))
