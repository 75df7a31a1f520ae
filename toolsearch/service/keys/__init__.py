"""API keys: logic, routes and page; and signing in to the pages with one."""
