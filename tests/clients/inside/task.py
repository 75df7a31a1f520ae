"""What each library client does: it gives the model its tools, runs those that are called, and tells what came of it.

    NAME_task.py URL WIRE LISTING MODE PROMPT...

URL is the address of the model API without a version, LISTING a file with MCP tools as JSON, and MODE "whole" or
"stream". The prompts are said one after another in one conversation. The last line printed is JSON: the model's last
text for each prompt, and the calls as pairs of name and arguments.
"""

import json
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Json = dict[str, Any]


@dataclass
class Task:
    url: str
    wire: str
    tools: list[Json]
    is_streamed: bool
    prompts: list[str]
    calls: list[tuple[str, Json]] = field(default_factory=list)
    answers: list[str] = field(default_factory=list)

    def run(self, name: str, arguments: Json) -> str:
        self.calls.append((name, arguments))
        return f"{name} has run: said in words"

    def runner(self, name: str) -> Callable[..., Awaitable[str]]:
        """The tool *name* as a function of keywords."""

        async def run(**arguments: Any) -> str:
            return self.run(name, arguments)

        return run

    def tell(self) -> None:
        print(json.dumps({"answers": self.answers, "calls": self.calls}))


def task() -> Task:
    url, wire, listing, mode, *prompts = sys.argv[1:]
    return Task(url, wire, json.loads(Path(listing).read_text(encoding="utf-8")), mode == "stream", prompts)
