"""The MCP gateway: one server in front of many. Nothing is imported here, since the SDK is heavy and optional.

Who knows what, from the bottom; arrows point down:

    settings     what ``mcp.json`` says: the servers, and the section ``toolsearch``
    tools        one tool of one server, by both its names, whole as it was listed
    trust        may this definition be shown: pins, findings of the scan, a person's word
    upstream     one server each: an actor that keeps it up, lists it, sends it requests
    registry     what all servers list by now, in the catalog and by name
    principals   who is asking, and what is in their reach
    exposure     what a client of that era and name is shown, and what a search answers it
    proxy        a call, a resource, a prompt: there and back without a loss
    status       how all of it fares, as plain data, and the page that shows it
    gateway      all of it put together; knows nothing of transports
    callers      who makes a request, out of what the SDK knows of it
    downstream   the client of a request, as what a server may ask and tell it
    changes      whom to tell that a list has changed
    content      resources, prompts, completion and logging, as handlers of the SDK's server
    unexpected   what a client gets when a request fails in a way that nobody foresaw
    server       the SDK's server around it; ``stdio`` and ``http`` are how it is reached
"""
