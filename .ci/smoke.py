"""What a user does first with the installed wheel: search, expand, count, and run the demonstration."""

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

assert "search" in run("toolsearch", "--help")
print(run("toolsearch", "demo"))
