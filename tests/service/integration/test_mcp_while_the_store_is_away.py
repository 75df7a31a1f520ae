"""MCP clients while the store is away: their models are told to try again, and nobody has to connect anew."""

from pathlib import Path

import pytest
from mcp import MCPError

from tests.kit.gateway import ERAS, text
from tests.kit.mcp_sessions import mcp_service
from tests.kit.outage import outage
from toolsearch.tools.naming import TOOL_NAME

TOOLS = [{"name": "pay_bill", "description": "Pay a bill with money."}]
QUERY = {"query": "select:pay_bill"}


@pytest.mark.parametrize("era", ERAS)
async def test_a_model_is_told_to_try_again_over_the_connection_that_it_has(tmp_path: Path, era: str) -> None:
    async with mcp_service(tmp_path, TOOLS) as served:
        session = await served.session(url_token=True)
        async with served.mcp(session["mcp_url"], era, None) as client:
            with outage(served.kit.service.storage), pytest.raises(MCPError, match="try again later") as raised:
                await client.call_tool(TOOL_NAME, QUERY)
            assert "store_unavailable" in str(raised.value.error.data)
            assert "nobody answers" not in str(raised.value)

            assert "pay_bill" in text(await client.call_tool(TOOL_NAME, QUERY))
