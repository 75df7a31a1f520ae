"""What HTTP needs, whatever is asked for: who asks, limits, bodies, problems, repeats, pages of lists.

The middleware, outermost first; `toolsearch.service.app` puts it in this order:

    UrlTokens       the token of a session is taken out of the address
    RequestIds      each request has an id, which is in its answer and in the log
    Observed        each request is counted, timed, logged and traced
    SecureHeaders   headers that tell browsers to be strict
    Failures        whatever is raised becomes a problem document
    HostGuard       requests for other hosts and from foreign pages are refused: `toolsearch.gateway.http_guard`
    Authentication  who asks, and whether that is not too often
    EndlessStreams  streams that would never end are ended when the service does
    Deadline        how long a request may take
    Bodies          how large and how deeply nested a body may be
    Audited         writes are recorded before they are acknowledged: `toolsearch.service.audit`
    Repeats         a repeated request with an Idempotency-Key gets the answer of the first

They are plain ASGI: nothing holds an answer back that is streamed.
"""
