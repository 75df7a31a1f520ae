"""The MCP gateway: one server in front of many. Nothing is imported here, since the SDK is heavy and optional.

Who knows what, from the bottom; arrows point down, and `lint-imports` holds them:

    settings       what ``mcp.json`` says: the servers, and the section ``toolsearch``
    trust          may this definition be shown: pins, findings of the scan, a person's word
    registry       what of the servers' listings is admitted to the catalog; contents: what is not tools
    exposure       what a client of that era and name is shown, and what a search answers it
    status         how all of it fares, as plain data
    proxy          a call, a resource, a prompt: there and back without a loss
    gateway        all of it put together; knows nothing of transports
    request_caller, downstream, unexpected   the client of a request, and what it gets when that fails
    changes, content, instructions    the lists that change, and what there is beside tools, as the SDK's handlers
    server         the SDK's server around it
    reports        what people are shown: the check, what waits for approval, which gateways run, the page
    http, stdio    how the server is reached
"""
