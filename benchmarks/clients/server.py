"""An MCP server over stdio, in JSON-RPC written by hand, so that it may do what a library's would not.

    python benchmarks/clients/server.py TOOLS LOG

TOOLS is a JSON list of tools. A call of any of them is answered by a text, and by `structuredContent` that says
something else. A call of the tool `add` adds the tool `added` and says so by a notification. LOG gets each message as a
line.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

TEXT, STRUCTURED = "said in words", "said in fields"  # which of a result a model has read shows in these
ADD, ADDED = "add", "added"
_NO_METHOD = {"code": -32601, "message": "Method not found"}


def main(listing: Path, log: Path) -> None:
    tools: list[dict[str, Any]] = json.loads(listing.read_text(encoding="utf-8"))
    for line in sys.stdin:
        with log.open("a", encoding="utf-8") as lines:
            lines.write(line)
        message = json.loads(line)
        if "id" in message and "method" in message:
            _answer(message, tools)


def _answer(message: dict[str, Any], tools: list[dict[str, Any]]) -> None:
    params = message.get("params", {})
    match message["method"]:
        case "initialize":
            about = {"name": "probe", "version": "1"}
            capabilities = {"tools": {"listChanged": True}}
            result = {"protocolVersion": params["protocolVersion"], "capabilities": capabilities, "serverInfo": about}
        case "ping":
            result = {}
        case "tools/list":
            result = {"tools": tools}
        case "tools/call":
            result = _call(params["name"], tools)
        case _:
            _send({"id": message["id"], "error": _NO_METHOD})
            return
    _send({"id": message["id"], "result": result})


def _call(name: str, tools: list[dict[str, Any]]) -> dict[str, Any]:
    if name not in {tool["name"] for tool in tools}:
        return {"content": [{"type": "text", "text": f"there is no tool {name}"}], "isError": True}
    if name == ADD:
        schema: dict[str, Any] = {"type": "object", "properties": {}}
        tools.append({"name": ADDED, "description": "Says that it was added.", "inputSchema": schema})
        _send({"method": "notifications/tools/list_changed"})
    return {
        "content": [{"type": "text", "text": f"{name} has run: {TEXT}"}],
        "structuredContent": {"tool": name, "outcome": STRUCTURED},
    }


def _send(message: dict[str, Any]) -> None:
    print(json.dumps({"jsonrpc": "2.0"} | message), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
