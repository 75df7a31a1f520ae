"""The MCP face of sessions. A session finds and calls the same tools by MCP, in either era, and by HTTP.

face.py         who may use which session; which endpoint serves it
endpoint.py     the MCP server of one catalog or toolset, made when the first client comes; scopes and limits
connections.py  connections that can be ended from here; their ids, by which any replica can open them again
"""
