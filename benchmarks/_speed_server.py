"""A small MCP server over stdio for `speed_paired`: ten tools that repeat what they are told."""

from mcp.server.mcpserver import MCPServer


def echo(message: str) -> str:
    return message


server = MCPServer("echo")
for subject in ("mail", "invoice", "calendar", "weather", "ticket", "branch", "photo", "song", "contact", "parcel"):
    server.add_tool(echo, name=f"echo_{subject}", description=f"Echo a message about a {subject} back, word for word.")
server.run("stdio")
