"""Five published MCP servers: two of Python, and three that `npm ci` brings."""

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.kit.gateway import SERVERS, time_server

NODE_MODULES = SERVERS / "node_modules" / "@modelcontextprotocol"
NODE = shutil.which("node")

needs_node = pytest.mark.skipif(
    NODE is None or not NODE_MODULES.is_dir(),
    reason="needs Node.js and the servers; run: npm ci --prefix tests/mcp_servers",
)


def node(server: str, *args: str, **env: str) -> dict[str, Any]:
    return {"command": NODE, "args": [str(NODE_MODULES / server / "dist" / "index.js"), *args], "env": env}


def published_servers(folder: str, *, memory: str) -> dict[str, Any]:
    """Their entries, by name: git and filesystem work on *folder*, and memory keeps the file *memory*."""
    return {
        "git": {"command": sys.executable, "args": ["-m", "mcp_server_git", "--repository", folder]},
        "time": time_server(),
        "everything": node("server-everything"),
        "filesystem": node("server-filesystem", folder),
        "memory": node("server-memory", MEMORY_FILE_PATH=memory),
    }


def make_repository(folder: Path) -> Path:
    subprocess.run(["git", "init", "-q", "-b", "trunk", folder], check=True)
    (folder / "notes.txt").write_text("remember the milk")
    return folder
