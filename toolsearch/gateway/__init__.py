"""The MCP gateway: one server in front of many. Nothing is imported here, since the SDK is heavy and optional.

The modules from the bottom up. Each may only import those above it in this list; `lint-imports` checks that:

    settings       the content of ``mcp.json``: the servers, and the section ``toolsearch``
    caller         who makes a request, and the answer to it if it fails unexpectedly
    trust          whether a definition may be shown: verdicts, the scan, and approvals by a person
    registry       which listed tools, prompts and resources enter the catalog
    status         the state of the gateway as plain data
    exposure       what a client is shown and what a search answers, by its protocol era and its name
    servers        the servers, and how they are added and removed
    approvals      entries that await approval, for commands and for the service
    door           answers a client over stdio while the gateway is still loading
    proxy          passes calls, resources and prompts to the servers, and their answers back
    gateway        puts all of it together; knows nothing of transports
    changes        tells clients of changed lists
    reports        the status page, and the reports of the commands ``check`` and ``status``
    server         the SDK's server around the gateway, with its handlers
    http, stdio    the transports; http_guard checks each HTTP request first
"""
