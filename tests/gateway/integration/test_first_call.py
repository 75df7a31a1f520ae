"""What the first call of a gateway need not wait for."""

_LISTS_A_TOOL = """
import asyncio, sys
from tests.kit.fake_servers import gateway_of

async def main():
    async with gateway_of("a") as (gateway, servers):
        print("jsonschema" in sys.modules)
        await servers["a"].lists("dig")
        print("jsonschema" in sys.modules)

asyncio.run(main())
"""


def test_what_checks_arguments_is_loaded_once_there_are_tools_and_not_before(run_python):
    assert run_python("-c", _LISTS_A_TOOL).out.split() == ["False", "True"]
