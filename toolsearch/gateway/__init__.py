"""The MCP gateway: one server in front of many. What is heavy is imported when it is used.

The modules from the bottom up. Each may only import those above it in this list; `lint-imports` checks that:

    settings       the content of ``mcp.json``: the servers, and the section ``toolsearch``
    caller         who makes a request, and the answer to it if it fails unexpectedly
    http_guard     checks each HTTP request: its host, its page and its token
    trust          whether a definition may be shown: verdicts, the scan, and approvals by a person
    overrides      tools as the settings of their server have them: off, renamed, with arguments of their own
    operators      requests by which operators look at and change a running gateway
    registry       which listed tools, prompts and resources enter the catalog, and which await approval
    status         the state of the gateway as plain data
    exposure       what a client is shown and what a search answers, by its protocol era and its name
    servers        the servers, and how they are added and removed
    audit          the record of who called what
    config_file    reads ``mcp.json``, and follows its changes
    greeting       the first answers over stdio, kept from the last run
    list_costs     the costs of the lists that clients are sent
    user_reach     which entries of per-user servers each principal may see
    server_entries changes the servers in ``mcp.json``
    proxy          passes calls, resources and prompts to the servers, and their answers back
    approvals      entries that await approval, for commands and for the service
    door           answers a client over stdio while the gateway is still loading
    gateway        puts all of it together; knows nothing of transports
    changes        tells clients of changed lists
    login_pages    where each user logs in to per-user servers, and out again
    reports        the status page, and the reports of the commands ``check`` and ``status``
    server         the one MCP server around a gateway, also for the service: who asks and what is allowed are passed in
    http, stdio    the transports
    daemon         the background process that all clients over stdio share
"""

from toolsearch.lazy_names import lazy_names

_load, __dir__, __all__ = lazy_names(__name__, __file__)


def __getattr__(name: str) -> object:
    if name in ("Gateway", "http_app"):
        from importlib.util import find_spec

        if find_spec("mcp") is None:
            from toolsearch.errors import MissingExtraError

            raise MissingExtraError(f"{__name__}.{name}", "mcp")
    return _load(name)
