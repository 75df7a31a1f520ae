"""A stdio server in plain JSON that gives what its file says, so that it can lie about skills, prompts and resources.

python contents_server.py FILE. FILE is read anew for each request:

skills, prompts, resources, resourceTemplates  what it lists
page                    entries of a page; none: all on one page. A negative number: page after page without an end
read                    URI -> the contents, as `resources/read` gives them
get                     URI -> the skill, as `skills/get` gives it
directories             URI -> the children; declares that it lists directories
silent, failing, deadly the methods that it never answers, answers with an error, ends at
dropped                 the methods that it does not have
old                     whether it speaks the protocol of 2025
instructions            its instructions
asked                   file to which the method and the target of each request are appended
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

LISTS = {
    "skills/list": "skills",
    "prompts/list": "prompts",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
    "tools/list": "tools",
}
TOOL = {"name": "pay", "inputSchema": {"type": "object"}}


def capabilities(about: dict[str, Any]) -> dict[str, Any]:
    skills = {
        "extensions": {"io.modelcontextprotocol/skills": {"directoryRead": True} if "directories" in about else {}}
    }
    return {
        "tools": {},
        "resources": {},
        **({"prompts": {}} if "prompts" in about else {}),
        **(skills if "skills" in about else {}),
    }


def page_of(about: dict[str, Any], key: str, cursor: str | None) -> dict[str, Any]:
    entries = [TOOL] if key == "tools" else about.get(key, [])
    size = about.get("page", 0) if key == "skills" else 0
    if not size:
        return {key: entries}
    start = int(cursor or 0)
    end = start + abs(size)
    is_more = size < 0 or end < len(entries)
    shown = [entries[start % len(entries)]] if size < 0 else entries[start:end]
    return {key: shown, **({"nextCursor": str(end)} if is_more else {})}


def answer(about: dict[str, Any], method: str, params: dict[str, Any]) -> dict[str, Any] | None:
    if method in LISTS:
        return page_of(about, LISTS[method], params.get("cursor"))
    info = {"name": "contents", "version": "1"}
    match method:
        case "server/discover":
            more = {"supportedVersions": ["2026-07-28"], "serverInfo": info}
            return {**more, "capabilities": capabilities(about), "instructions": about.get("instructions", "")}
        case "initialize":
            more = {"protocolVersion": "2025-11-25", "serverInfo": info}
            return {**more, "capabilities": capabilities(about), "instructions": about.get("instructions", "")}
        case "tools/call":
            return {"content": [{"type": "text", "text": "paid"}]}
        case "prompts/get":
            said = {"type": "text", "text": json.dumps(params)}
            return {"messages": [{"role": "user", "content": said}, {"role": "assistant", "content": said}]}
        case "resources/read" if params["uri"] in about.get("read", {}):
            return {"contents": about["read"][params["uri"]]}
        case "skills/get" if params["uri"] in about.get("get", {}):
            return {"skill": about["get"][params["uri"]]}
        case "resources/directory/read" if params["uri"] in about.get("directories", {}):
            return {"resources": about["directories"][params["uri"]]}
    return None


def main() -> None:
    file = Path(sys.argv[1])
    for line in sys.stdin:
        message = json.loads(line)
        method, params = message.get("method", ""), message.get("params") or {}
        if "id" not in message:
            continue
        about = json.loads(file.read_text())
        if "asked" in about:
            with Path(about["asked"]).open("a") as asked:
                asked.write(f"{method} {params.get('uri', params.get('name', ''))}\n")
        if method in about.get("silent", []):
            continue
        if method in about.get("deadly", []):
            os._exit(3)
        is_missing = method in about.get("dropped", []) or (method == "server/discover" and about.get("old"))
        result = None if is_missing or method in about.get("failing", []) else answer(about, method, params)
        if result is None:
            code = -32601 if is_missing else -32603 if method in about.get("failing", []) else -32602
            reply = {"error": {"code": code, "message": f"no {method}"}}
        else:
            reply = {"result": {"resultType": "complete", "ttlMs": 0, "cacheScope": "private", **result}}
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": message["id"], **reply}) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
