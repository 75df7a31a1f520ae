"""The disk takes nothing more: requests are told to come back, nobody is told of paths, and afterwards all goes on."""

import resource
from pathlib import Path

import httpx2
import pytest

from tests.kit.service_process import ServiceProcess, service_process


def let_it_write(service: ServiceProcess, limit: int) -> None:
    """Up to *limit* bytes into a file: beyond that, the system refuses as a full disk does."""
    resource.prlimit(service.process.pid, resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))


@pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="only Linux takes room from another process")
def test_a_full_disk_is_told_as_what_passes_and_without_paths(tmp_path: Path) -> None:
    with service_process(tmp_path) as service, service.client() as client:
        asked = [("POST", "/v1/catalogs", {"name": "tools"}), ("POST", "/v1/keys", {"name": "one more"})]
        let_it_write(service, 0)
        refused = [client.request(method, path, json=body) for method, path, body in asked]
        ready, alive, read = (client.get(path) for path in ("/readyz", "/healthz", "/v1/catalogs"))
        let_it_write(service, resource.RLIM_INFINITY)
        taken = [client.request(method, path, json=body).status_code for method, path, body in asked]
        httpx2.get(f"{service.url}/readyz")
        service.process.terminate()
        _, log = service.process.communicate(timeout=60)

    for answer in refused:
        assert (answer.status_code, answer.json()["code"]) == (503, "store_unavailable")
        assert int(answer.headers["retry-after"]) == 30
        assert str(tmp_path) not in answer.text
        assert "the disk is full" in answer.json()["detail"]
    assert (ready.status_code, alive.status_code, read.status_code) == (503, 200, 200)
    assert taken == [201, 201]
    assert [log.count(text) for text in ("cannot be written", "can be written again")] == [1, 1]
