"""Lists all that one server has, page by page; what is malformed costs only itself."""

from __future__ import annotations

from toolsearch.catalog.loading import Refusal
from toolsearch.catalog.sources.mcp_config import McpServer
from toolsearch.catalog.sources.mcp_listing import read_listing
from toolsearch.catalog.sources.mcp_pages import read_pages
from toolsearch.catalog.sources.mcp_session import McpSession
from toolsearch.gateway.tools import GatewayTool
from toolsearch.gateway.upstream.protocol import Listing


async def read_server(server: McpServer, session: McpSession) -> Listing:
    """Raises MCPError where the server refuses even to list its tools."""
    entries, cut_short = await read_pages(session.list_page)
    listed, refused = read_listing(server.name, entries, server.name)
    if cut_short:
        refused.append(Refusal(server.name, server.name, cut_short))
    tools = [GatewayTool(server.name, tool.remote_name, tool.definition, tool.raw) for tool in listed]
    return Listing(server.name, tuple(tools), tuple(refused), instructions=session.sdk.instructions or "")
