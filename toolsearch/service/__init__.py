"""The service: one process for many agents and tenants, over HTTP and MCP, with pages to look at.

    app.py            the application, put together: middleware, routes, the MCP face, pages
    routes/           what is asked over HTTP: one module for each kind of thing
    pages/            what people look at
    mcp_face/         the MCP face of a session
    session_tokens.py tokens that are good for one session alone
    service.py        everything that the routes need, as one object
    keys.py  tenants.py  catalogs.py  toolsets.py  sessions.py  approvals.py  activity/
                      what can be done, whoever asks
    corpora/          which catalogs and toolsets are in memory, with their indexes; how they are opened and followed
    writing.py  tool_entries.py  stored_tools.py  refused_tools.py    what is written to catalogs, and what is refused
    toolset_specs.py  asked_reach.py    what a toolset is made of, and what part of a corpus is asked for
    imports/          what catalogs import from, and their MCP servers
    jobs.py  job_records.py     work that goes on behind a request, in one replica, seen from all
    replica_lease.py  how replicas know which of them run
    executions.py  http_tools.py  python_tools.py    what runs stored tools
    outbound.py       how anything is reached that a tenant has named
    middleware/       what every request passes before a route runs: who asks, limits, bodies, the audit
    callers.py        who makes a request, and what the credential allows
    problems.py  refusals.py    one shape for all errors
    conditional.py  cursors.py  idempotency.py    what HTTP has for reading and writing safely
    limits.py  audit.py         how much is too much, and who did what
    seal.py  secret_keys.py  resealing.py    what is encrypted in the store, with which keys, and their exchange
    readiness.py      whether the store can be written
    retention.py  backup.py     what is deleted with time, and copies of everything

The compatible proxy for the APIs of OpenAI and Anthropic will be a package beside `routes`, under ``/proxy``.
"""
