"""Shared parts of HTTP: callers, limits, bodies, problems, repeats, pages of lists.

The middleware, outermost first; `toolsearch.service.app` puts it in this order:

    UrlTokens           the token of a session is taken out of the address
    RequestIds          each request has an id, which is in its answer and in the log
    Observed            each request is counted, timed, logged and traced
    SecureHeaders       headers that tell browsers to be strict
    Failures            every exception becomes a problem document
    HostGuard           requests for other hosts and from foreign pages are refused: `toolsearch.gateway.http_guard`
    Authentication      finds the caller, and bounds the rate of requests
    EndlessStreams      streams that would never end are ended when the service does
    Deadline            bounds the time of a request
    Bodies              bounds the size and the nesting of a body
    Audited             writes are recorded before they are acknowledged: `toolsearch.service.audit`
    IdempotentRequests  a repeated request with an Idempotency-Key gets the answer of the first

They are plain ASGI, so that streamed answers are not held back.
"""
