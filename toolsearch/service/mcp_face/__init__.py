"""The MCP face of sessions: what a client of either era finds and calls there is there by HTTP too, and the other way.

face.py        who may use which session; which endpoint serves it
endpoint.py    the MCP server of one catalog or toolset, made when the first client comes
tools.py       what stands before the tools: scopes and limits
connection.py  requests and connections that can be ended from here
connection_ids.py  ids of connections, by which any replica can open them again
transports.py  the SDK's transports under such ids
"""
