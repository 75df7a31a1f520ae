"""The MCP gateway: one server in front of many. Nothing is imported here, since the SDK is heavy and optional.

The modules from the bottom up. Each may only import those above it in this list; `lint-imports` checks that:

    settings       what ``mcp.json`` says: the servers, and the section ``toolsearch``
    trust          whether a definition may be shown: pins, the scan, and approvals by a person
    registry       which listed tools enter the catalog; server_contents: prompts, resources and instructions
    exposure       what a client is shown and what a search answers, by its protocol era and its name
    status         the state of the gateway as plain data
    servers        which servers there are, and how they come and go
    proxy          passes calls, resources and prompts to the servers, and their answers back
    gateway        puts all of it together; knows nothing of transports
    request_caller, downstream, unexpected   the client of a request, and the answer if the request fails
    changes, content_handlers, instructions    tells clients of changed lists; handlers for what is not tools
    server         the SDK's server around the gateway
    greeting, door what a client over stdio is told first, and how it is told while the gateway is still being loaded
    reports        what people are shown: the check, what awaits approval, which gateways run, the status page
    http, stdio    the transports
"""
