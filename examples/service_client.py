"""A service asked by its client: a catalog, tools, a session for an agent, a search and a call.

Start the service first, and take over the two lines that it prints:

    toolsearch serve --data data > service.env &
    set -a; . ./service.env
    python examples/service_client.py
"""

import os
import sys

from toolsearch.client import ToolSearchClient
from toolsearch.errors import ServiceError

TOOLS = [
    {
        "name": "send_mail",
        "description": "Send a letter to somebody.",
        "input_schema": {"type": "object", "properties": {"to": {"type": "string"}}, "required": ["to"]},
    },
    {"name": "book_room", "description": "Book a meeting room.", "input_schema": {"type": "object"}},
]


def main(url: str, key: str) -> None:
    with ToolSearchClient(url, key) as client:
        client.create_catalog("office")
        client.write_tools("office", TOOLS)
        session = client.open_session(catalog="office", url_token=True)
        print("give your agent this MCP server:", session.mcp_url.partition("/mcp/")[0] + "/mcp/...")

        found = client.session_search(session.id, "write to somebody")
        print("found:", [tool.name for tool in found.answers[0].tools])
        request = client.session_tools(session.id, format="anthropic")
        print("the model is sent:", [tool["name"] for tool in request["tools"]])

        call = client.call_in_session(session.id, "send_mail", {"to": "ann@example.com"})
        print("the call is", call.status, "with", call.arguments)


if __name__ == "__main__":
    url, key = os.environ.get("TOOLSEARCH_URL"), os.environ.get("TOOLSEARCH_KEY")
    if not url or not key:
        sys.exit("Start the service first, and set TOOLSEARCH_URL and TOOLSEARCH_KEY, as the top of this file says.")
    try:
        main(url, key)
    except ServiceError as error:
        sys.exit(f"error [{error.code}]: {error}")
