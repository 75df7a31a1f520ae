"""Many random conversations through the proxy; see `tests.proxy.test_strict_apis`.

``PROXY_FUZZ=350`` has that many of each kind, and ``PROXY_FUZZ_SEED`` chooses others.
"""

import logging
import os

import pytest

from tests.kit.proxy_fuzz import WIRES, fuzzed
from tests.kit.strict_upstreams.core import Wire
from toolsearch.wire.capabilities import Cloud

CONVERSATIONS = int(os.environ.get("PROXY_FUZZ", "10"))
SEED = int(os.environ.get("PROXY_FUZZ_SEED", "1"))


@pytest.mark.parametrize("cloud", ["", "azure", "other"], ids=["first-party", "azure", "other"])
@pytest.mark.parametrize(
    ("wire", "stored"), [*((wire, False) for wire in WIRES), pytest.param("responses", True, id="responses-stored")]
)
@pytest.mark.timeout(120 + 3 * CONVERSATIONS)
async def test_nothing_is_refused(wire: Wire, stored: bool, cloud: Cloud, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL, "toolsearch")  # the operator's tools fail now and then
    ran = await fuzzed(wire, CONVERSATIONS, SEED, cloud=cloud, stored=stored)
    print(f"{len(ran.fake.requests)} requests to the API. {ran.report}")  # noqa: T201  for -s

    assert ran.problems == []
