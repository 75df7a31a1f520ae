"""The MCP Inspector, run from its command line: a client that nobody here wrote."""

import asyncio
import json
import os
import shutil
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from tests.kit.gateway import SERVERS

INSPECTOR = SERVERS / "node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js"
NODE = shutil.which("node")

Inspect: TypeAlias = Callable[..., Coroutine[Any, Any, dict[str, Any]]]

needs_inspector = pytest.mark.skipif(
    NODE is None or not INSPECTOR.is_file(),
    reason="needs Node.js and the Inspector; run: npm ci --prefix tests/mcp_servers",
)


def inspecting(target: list[str], home: Path) -> Inspect:
    """Give what runs the Inspector once with some options and returns the result that it prints."""

    async def run(*options: str) -> dict[str, Any]:
        result: dict[str, Any] = json.loads(await inspected([*target, *options], home))
        return result

    return run


async def inspected(options: list[str], home: Path) -> str:
    """What the Inspector prints, which found nothing that it should not have."""
    process = await asyncio.create_subprocess_exec(
        str(NODE),
        *[str(INSPECTOR), "--cli", "--quiet", *options],
        env={"PATH": os.environ["PATH"], "HOME": str(home)},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    output, errors = await process.communicate()
    assert process.returncode == 0, errors.decode()
    return output.decode()


def calling(tool: str, arguments: dict[str, Any]) -> list[str]:
    return ["--method", "tools/call", "--tool-name", tool, "--tool-args-json", json.dumps(arguments)]
