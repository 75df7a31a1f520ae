"""A stdio MCP server that fails as the file ``mode`` in its folder says, and writes down there what it has run.

python fault_server.py FOLDER

FOLDER/mode  looked at with every message: ok, silent, hang, junk, noise (more of it), slow-list, pages, bad, changed,
             line-flood, flood, burst (of notifications before an answer), progress (and an answer in one line)
FOLDER/pids  one line for every start; FOLDER/runs  one for every call that was run, with its argument
"""

import json
import os
import sys
import threading
import time
from pathlib import Path

folder = Path(sys.argv[1])
writing = threading.Lock()

PAGES = 50
TOOLS_PER_PAGE = 200
SCHEMA = {"type": "object", "properties": {"id": {"type": "string"}}}
WORK = {
    "name": "work",
    "description": "Do a piece of work.",
    "inputSchema": SCHEMA,
    "annotations": {"readOnlyHint": True},
}
BAD = [
    WORK,
    {"name": "array", "inputSchema": {"type": "array"}},
    {"name": "text", "inputSchema": "object"},
    {"inputSchema": SCHEMA},
    "not a tool",
    {**WORK, "description": "The same name again."},
]


def mode() -> str:
    return (folder / "mode").read_text()


def send(message: object) -> None:
    with writing:
        sys.stdout.write(json.dumps(message) + "\n")
        sys.stdout.flush()


def note(name: str, line: object) -> None:
    with (folder / name).open("a") as file:
        file.write(f"{line}\n")


def listing(cursor: str | None) -> dict[str, object]:
    match mode():
        case "pages":
            page = int(cursor or 0)
            numbers = range(page * TOOLS_PER_PAGE, (page + 1) * TOOLS_PER_PAGE)
            tools = [{**WORK, "name": f"tool{number}"} for number in numbers] + ([WORK] if page == 0 else [])
            return {"tools": tools, "nextCursor": str((page + 1) % PAGES)}
        case "bad":
            return {"tools": BAD}
        case "changed":
            return {"tools": [{**WORK, "description": "Do another piece of work."}]}
    return {"tools": [WORK]}


def flood(behaviour: str) -> None:
    """Until the mode is another one: a line without an end, or notifications without end."""
    notification = {"method": "notifications/message", "params": {"level": "info", "data": "x" * 200}}
    text = "x" * 65_536 if behaviour == "line-flood" else json.dumps({"jsonrpc": "2.0", **notification}) + "\n"
    while mode() == behaviour:
        with writing:
            for _ in range(32):
                sys.stdout.write(text)
            sys.stdout.flush()
    with writing:
        sys.stdout.write("\n")
        sys.stdout.flush()


def call(request_id: object, arguments: dict[str, str]) -> None:
    note("runs", arguments["id"])
    behaviour = mode()
    if behaviour == "hang":
        return
    if behaviour == "changed":
        for _ in range(3):
            send({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
    if behaviour == "burst":
        for number in range(10_000):
            params = {"level": "info", "data": number}
            send({"jsonrpc": "2.0", "method": "notifications/message", "params": params})
    if behaviour == "progress":
        with writing:
            sys.stdout.write("Loading... " * 2_000_000)
    if behaviour in ("flood", "line-flood"):
        threading.Thread(target=flood, args=[behaviour], daemon=True).start()
    send(
        {
            "jsonrpc": "2.0",
            "id": request_id,
            "result": {"content": [{"type": "text", "text": f"{arguments['id']} by {os.getpid()}"}]},
        }
    )


def answer(message: dict[str, object]) -> None:
    request_id = message.get("id")
    params = message.get("params") or {}
    match message.get("method"):
        case "initialize":
            info = {"name": "faulty", "version": "1"}
            capabilities = {"tools": {"listChanged": True}}
            result = {"protocolVersion": "2025-11-25", "capabilities": capabilities, "serverInfo": info}
            send({"jsonrpc": "2.0", "id": request_id, "result": result})
        case "server/discover":
            send({"jsonrpc": "2.0", "id": request_id, "error": {"code": -32601, "message": "no such method"}})
        case "tools/list":
            if mode() == "slow-list":
                time.sleep(0.3)
            send({"jsonrpc": "2.0", "id": request_id, "result": listing(params.get("cursor"))})
        case "tools/call":
            call(request_id, params["arguments"])


def main() -> None:
    note("pids", os.getpid())
    for line in sys.stdin:
        message = json.loads(line)
        behaviour = mode()
        if behaviour == "silent":
            continue
        if behaviour in ("junk", "noise"):
            with writing:
                sys.stdout.write("Loading... 100%\n{ half a message\n[]\n" * (1 if behaviour == "junk" else 20))
        if message.get("method") == "tools/list":
            threading.Thread(target=answer, args=[message], daemon=True).start()  # a slow one holds up no call
        else:
            answer(message)


if __name__ == "__main__":
    main()
