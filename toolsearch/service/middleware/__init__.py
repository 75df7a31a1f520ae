"""What every request passes before a route runs, outermost first: `toolsearch.service.app` puts them in this order.

    url_tokens.py      the token of a session is taken out of the address
    request_ids.py     each request has an id, which is in its answer and in the log
    observing.py       each request is counted, timed, logged and traced
    headers.py         headers that tell browsers to be strict
    failures.py        whatever is raised becomes a problem document
    (HostGuard)        requests for other hosts and from foreign pages are refused: `toolsearch.gateway.http_guard`
    authentication.py  who asks, and whether that is not too often
    deadline.py        how long it may take
    (EndlessStreams)   streams that would never end are ended when the service does: `toolsearch.service.shutdown`
    bodies.py          how large and how deeply nested a body may be
    auditing.py        writes are recorded before they are acknowledged
    repeats.py         a repeated request with an Idempotency-Key gets the answer of the first

They are plain ASGI: nothing holds an answer back that is streamed.
"""
