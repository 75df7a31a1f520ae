"""The socket at which a service listens."""

import socket

from toolsearch.service.serving import listening


def test_what_is_sent_over_a_connection_leaves_at_once() -> None:
    """Or the body of each answer waits for the client's acknowledgement of its head."""
    with listening("127.0.0.1", 0) as listener, socket.create_connection(listener.getsockname()):
        accepted, _ = listener.accept()
        with accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
