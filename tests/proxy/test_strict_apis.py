"""Random conversations through the proxy, against a fake of the model APIs that was written by somebody else.

It refuses what they refuse. Here it refuses nothing, and the client finds nothing wrong.
"""

import pytest

from tests.kit.proxy_fuzz import WIRES, fuzzed
from tests.kit.strict_upstreams.core import Wire
from toolsearch.wire.capabilities import Cloud


@pytest.mark.parametrize("cloud", ["", "azure", "other"], ids=["first-party", "azure", "other"])
@pytest.mark.parametrize("wire", WIRES)
async def test_a_strict_api_and_a_strict_client_find_nothing_wrong(wire: Wire, cloud: Cloud) -> None:
    ran = await fuzzed(wire, 4, 36, cloud=cloud)

    assert ran.problems == []
    assert ran.report.calls > 0


@pytest.mark.parametrize("cloud", ["", "azure", "other"], ids=["first-party", "azure", "other"])
async def test_nothing_is_wrong_with_conversations_that_the_api_stores(cloud: Cloud) -> None:
    ran = await fuzzed("responses", 4, 36, cloud=cloud, stored=True)

    assert ran.problems == []
    assert ran.report.calls > 0
