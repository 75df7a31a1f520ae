"""The logins of users at MCP servers: kept in the store, and made and ended on a page."""
