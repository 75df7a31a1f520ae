"""Frameworks without an adapter, as clients of a real gateway: the blocks of ``docs/adapters/gateway.md``."""

import asyncio
import json
import re

import pytest

from tests.kit.adapter_pages import PAGES
from tests.kit.framework_environment import ROOT
from tests.kit.gateway import served

PAGE = (PAGES / "gateway.md").read_text(encoding="utf-8")
URL = "http://127.0.0.1:8080/mcp"


@pytest.mark.timeout(300)  # for the environment, which the first run makes
@pytest.mark.parametrize("name", ["CrewAI", "Semantic Kernel", "smolagents", "Strands"])
async def test_it_lists_and_calls_tools_through_the_gateway(framework, tmp_path, name):
    shown = re.search(rf"^## {name}\n.*?^```python\n(.*?)^```\n\n```text\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    installed = await asyncio.to_thread(framework, name.lower().replace(" ", "-"))
    servers = json.loads((ROOT / "examples" / "mcp_servers.json").read_text(encoding="utf-8"))

    async with served(servers) as (_, url):
        script = tmp_path / "block.py"
        script.write_text(shown[1].replace(URL, url), encoding="utf-8")
        printed = await asyncio.to_thread(installed.printed, script)

    assert URL in shown[1]
    assert printed == shown[2]
