"""A stdio MCP server in plain JSON, so that it can misbehave in ways that a library would not let it.

python raw_server.py [hang | junk | bad-tools | circles | endless | instructions | description]
"""

import json
import os
import sys

TOOLS = [
    {
        "name": name,
        "description": f"The {name} tool.",
        "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}},
        "annotations": {"readOnlyHint": True},
    }
    for name in ("echo", "fail", "never", "refuse", "started", "cancelled", "pid", "env", "crash")
]

BAD_TOOLS = [
    {"name": "good", "inputSchema": {"type": "object"}},
    {"name": "bare"},
    {"name": "empty schema", "inputSchema": {}},
    {"name": "no root type", "inputSchema": {"properties": {"a": {"type": "integer"}}}, "outputSchema": 7},
    {"name": "array", "inputSchema": {"type": "array"}},
    {"name": "text", "inputSchema": "object"},
    {"inputSchema": {"type": "object"}},
    "not a tool",
    {"name": "good", "inputSchema": {"type": "object"}},
    {
        "name": "header",
        "inputSchema": {"type": "object", "properties": {"a": {"type": "string", "x-mcp-header": "A"}}},
    },
    {
        "name": "bad header",
        "inputSchema": {"type": "object", "properties": {"a": {"type": "string", "x-mcp-header": "two words"}}},
    },
]

behaviour = sys.argv[1] if len(sys.argv) > 1 else ""
started: list[int] = []
cancelled: list[int] = []


def send(message: object) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def text(value: object, **more: object) -> dict[str, object]:
    return {"content": [{"type": "text", "text": str(value)}], **more}


def call(request_id: int, name: str, arguments: dict[str, str]) -> dict[str, object] | None:
    """The result of a tool, or None where the call is left without an answer."""
    match name:
        case "never":
            started.append(request_id)
            return None
        case "crash":
            os._exit(3)
        case "fail":
            return text("no such text", isError=True)
        case "echo":
            odd = {"type": "hologram", "depth": 3}
            return {"content": [{"type": "text", "text": arguments["text"]}, odd], "structuredContent": {"length": 1}}
        case "env":
            return text(json.dumps(dict(os.environ)))
        case _:
            return text({"started": len(started), "cancelled": len(cancelled), "pid": os.getpid()}[name])


def listing(cursor: str | None) -> dict[str, object]:
    if behaviour == "bad-tools":
        return {"tools": BAD_TOOLS}
    if behaviour == "circles":
        page = int(cursor or 0)
        return {"tools": [{**TOOLS[page], "name": f"tool{page}"}], "nextCursor": str((page + 1) % 3)}
    if behaviour == "endless":
        page = int(cursor or 0)
        return {"tools": [{"name": f"tool{page}"}], "nextCursor": str(page + 1)}
    return {"tools": TOOLS}


def answer(message: dict[str, object]) -> dict[str, object] | None:
    params = message.get("params") or {}
    match message.get("method"):
        case "initialize":
            words = "Echoes\x1b[1m\ntexts. Ask for one."
            info = {"name": "raw", "version": "1", **({"description": words} if behaviour == "description" else {})}
            more = {"instructions": words} if behaviour == "instructions" else {}
            return {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": info, **more}
        case "tools/list":
            return listing(params.get("cursor"))
        case "tools/call":
            return call(message["id"], params["name"], params.get("arguments") or {})
        case "notifications/cancelled":
            cancelled.append(params["requestId"])
    return None


def main() -> None:
    for line in sys.stdin:
        message = json.loads(line)
        name = (message.get("params") or {}).get("name")
        if behaviour == "hang":
            sys.stderr.write("asleep\n")
            continue
        if behaviour == "junk":
            sys.stdout.write("Loading... 100%\n{ half a message\n[]\n")
        if message.get("method") == "server/discover" or name == "refuse":
            reason = "no such method" if name is None else f"key {os.environ.get('API_KEY')} is not accepted"
            send({"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32601, "message": reason}})
        elif (result := answer(message)) is not None:
            send({"jsonrpc": "2.0", "id": message["id"], "result": result})


if __name__ == "__main__":
    main()
