"""Sessions of agents: logic, routes and page."""
