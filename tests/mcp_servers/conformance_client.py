"""What the conformance suite starts as a client: tells the gateway's test where the scenario's server is, and waits.

One gateway in a process that runs already costs a fraction of an interpreter for each of the suite's scenarios.
python -I -S conformance_client.py PORT URL
"""

import os
import socket
import sys

PREFIX = "MCP_CONFORMANCE_"

port, url = sys.argv[1:]
told = {name.removeprefix(PREFIX): value for name, value in os.environ.items() if name.startswith(PREFIX)}
with socket.create_connection(("127.0.0.1", int(port))) as connection, connection.makefile("rw") as stream:
    stream.write(repr({**told, "URL": url}) + "\n")
    stream.flush()
    sys.exit(stream.read() or None)  # what went wrong
