"""The formats of model APIs and of MCP: one module for each, in both directions. Nothing else knows a format."""
