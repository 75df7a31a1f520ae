"""The official scenarios for clients of skills, with a catalog of live servers as the client, in both eras."""

import ast
import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from tests.kit.gateway import SERVERS
from tests.kit.tools import call
from toolsearch.catalog.sources.mcp import McpSource
from toolsearch.errors import ChangedSkillError

SUITE = SERVERS / "node_modules" / "conformance-of-2026" / "dist" / "index.js"
NODE = SERVERS / "node_modules" / ".bin" / "node"
CLIENT = SERVERS / "conformance_client.py"

pytestmark = pytest.mark.skipif(
    not NODE.is_file() or not SUITE.is_file(), reason="needs the suite; run: npm ci --prefix tests/mcp_servers"
)


@asynccontextmanager
async def a_reader(era: str, *, reads: bool) -> AsyncIterator[int]:
    """Somebody who lists the server of the scenario that asks at the port that this gives, and then *reads* its skill:
    first SKILL.md, and the other file if that was right.
    """

    async def serve(reading: asyncio.StreamReader, writing: asyncio.StreamWriter) -> None:
        told = ast.literal_eval((await reading.readline()).decode())
        source = McpSource({"mcpServers": {"suite": {"url": told["URL"], "mode": era}}})
        try:
            report = await asyncio.to_thread(source.load)
            if reads:
                await call(report, "suite__pdf-processing")
                await call(report, "suite__pdf-processing", file="references/FORMS.md")
        except ChangedSkillError:
            pass
        finally:
            await asyncio.to_thread(source.close)
            writing.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        yield server.sockets[0].getsockname()[1]


@pytest.mark.parametrize("era", ["auto", "legacy"])
@pytest.mark.parametrize("scenario", ["no-prefetch", "verify-digest", "verify-size", "verify-frontmatter"])
async def test_a_catalog_reads_skills_as_the_suite_wants_it(tmp_path, scenario, era):
    async with a_reader(era, reads=scenario != "no-prefetch") as port:
        command = f"{sys.executable} -I -S {CLIENT} {port}"
        process = await asyncio.create_subprocess_exec(
            *[str(NODE), str(SUITE), "client", "--command", command, "--scenario", f"sep-2640-client-{scenario}"],
            cwd=tmp_path,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        output, _ = await process.communicate()

    assert process.returncode == 0, output.decode()
    assert "Passed: 1/1, 0 failed, 0 warnings" in output.decode()
