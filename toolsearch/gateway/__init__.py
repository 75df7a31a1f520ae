"""The MCP gateway: one server in front of many. Nothing is imported here, since the SDK is heavy and optional.

Who knows what, from the bottom; arrows point down, and `lint-imports` holds them:

    tools          one tool of one server, by both its names, whole as it was listed
    identity       which server something is known of
    token_hashes   bearer tokens, which are known by their hash alone
    private_files, log_guard, repeated   how files are written, and what is not logged, or not twice
    settings       what ``mcp.json`` says: the servers, and the section ``toolsearch``
    trust          may this definition be shown: pins, findings of the scan, a person's word
    upstream       one server each: an actor that keeps it up, lists it, sends it requests
    registry       what all servers list by now, in the catalog and by name
    principals     who is asking, and what is in their reach
    status         how all of it fares, as plain data
    exposure       what a client of that era and name is shown, and what a search answers it
    proxy          a call, a resource, a prompt: there and back without a loss
    first_listings what is waited for after the start
    gateway        all of it put together; knows nothing of transports
    callers        who makes a request, out of what the SDK knows of it
    downstream     the client of a request, as what a server may ask and tell it
    unexpected     what a client gets when a request fails in a way that nobody foresaw
    changes        whom to tell that a list has changed
    content        resources, prompts, completion and logging, as handlers of the SDK's server
    server         the SDK's server around it
    reports        what people are shown: the check, what waits for approval, which gateways run, the page
    http_guard     what an HTTP request has to pass before anything else looks at it
    stdio, http    how the server is reached
"""
