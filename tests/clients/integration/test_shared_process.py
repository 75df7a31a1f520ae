"""Real, unchanged clients of one configuration at the same time: one background process and one set of servers."""

from benchmarks.clients.installing import Programs
from benchmarks.daemon_clients import real_clients, together
from tests.kit.inspector import needs_inspector
from tests.kit.published_servers import needs_node

_CLIENTS = ("claude-code", "codex", "opencode", "Python SDK", "TypeScript SDK", "Inspector")


@needs_node
@needs_inspector
def test_real_clients_share_one_process_and_its_servers_and_leave_none_behind(programs: Programs) -> None:
    found = together(programs, real_clients(programs, None, _CLIENTS))

    assert [row.client for row in found.clients] == [*_CLIENTS]
    assert [(row.client, row.tools, row.called) for row in found.clients] == [(name, 4, True) for name in _CLIENTS]
    assert (found.processes, found.servers) == (1, 5)
    assert found.left == 0
