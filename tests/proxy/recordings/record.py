"""Write the recordings anew: ``python -m tests.proxy.recordings.record``. About 20 seconds; needs the agents of npm.

Each file has the last request of one agent's conversation, with a call and its result in the history. Sentences are
left out, since they belong to others, and so are most of the agent's own tools. Ids are numbered. The body keeps its
form.
"""

from __future__ import annotations

import json
import re
import tempfile
from pathlib import Path
from typing import Any, Final

from benchmarks.clients.installing import pinned
from benchmarks.clients.measuring import TIME
from benchmarks.clients.running import agent_home
from tests.kit.framework_environment import environments_folder
from tests.kit.loopback import Request
from tests.kit.real_clients import CLOCK, Finder, agent_named, listing_all, scripted_servers

HERE: Final = Path(__file__).parent
NAMES: Final = ("claude-code", "codex", "opencode")
_OWN_TOOLS: Final = ("bash", "edit", "read", "write", "exec_command", "apply_patch")  # in lower case
_SENTENCE: Final = "Some words."
_FEW_SPACES: Final = 2
_UUID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_NOT_KEPT: Final = ("authorization", "x-api-key", "host", "content-length")
_TOOL: Final = {
    "name": TIME.tool,
    "description": "Tells the time.",
    "inputSchema": {"type": "object", "properties": {}},
}


def main() -> None:
    for name in NAMES:
        with tempfile.TemporaryDirectory() as folder:
            (HERE / f"{name}.json").write_text(_recorded(name, Path(folder)), encoding="utf-8")


def _recorded(name: str, folder: Path) -> str:
    agent, variables = listing_all(agent_named(name))
    with agent_home(agent, pinned(environments_folder()), folder) as home:
        home.write(scripted_servers(folder, {TIME.server: [_TOOL]}))
        run = home.ask(TIME.prompt, Finder(CLOCK, agent.called_name(TIME.server, TIME.tool)), environment=variables)
    return with_numbers(json.dumps(_sanitised(run.requests[-1], folder), indent=1, ensure_ascii=False)) + "\n"


def with_numbers(text: str) -> str:
    """*text* with a number in the place of each id of a session, a turn or an installation, which are somebody's."""
    ids = list(dict.fromkeys(_UUID.findall(text)))
    return _UUID.sub(lambda found: f"00000000-0000-7000-8000-{ids.index(found[0]) + 1:012}", text)


def _sanitised(request: Request, folder: Path) -> dict[str, object]:
    headers = {key: value for key, value in request.headers.items() if key not in _NOT_KEPT}
    body = json.loads(request.raw.decode().replace(str(folder), "/home/ada"))
    return {"path": request.path, "headers": headers, "body": written(_shortened(body))}


def written(body: object) -> str:
    """*body* as the programs write it: all of them use JavaScript's form, or one that is equal to it."""
    return json.dumps(body, separators=(",", ":"), ensure_ascii=False)


def _shortened(value: Any) -> Any:
    if isinstance(value, str):
        return _SENTENCE if value.count(" ") >= _FEW_SPACES else value
    if isinstance(value, list):
        return [_shortened(item) for item in value]
    if isinstance(value, dict):
        tools = {"tools": [tool for tool in value["tools"] if _is_kept(tool)]} if "tools" in value else {}
        return {key: _shortened(part) for key, part in {**value, **tools}.items()}
    return value


def _is_kept(tool: Any) -> bool:
    """Whether *tool* is of a server, or one of the few of the agent's own that are kept."""
    name = str((tool.get("function") or tool).get("name", "")).lower()
    return name in _OWN_TOOLS or TIME.tool in name or tool.get("type") == "namespace"


if __name__ == "__main__":
    main()
