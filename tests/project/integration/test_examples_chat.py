"""The examples of chat and tool calling: what each prints without a key, and that all examples are run by some test."""

from pathlib import Path

import pytest

from tests.kit.examples import EXAMPLES, run_example
from tests.kit.loopback import LoopbackApi, Reply

PRINTED = Path(__file__).parent / "example_outputs"
NAMES = sorted(path.stem for path in PRINTED.glob("*.txt"))
# They have tests of their own.
ELSEWHERE = {"anthropic_agent", "openai_agent", "quickstart", "service_client", "weather_28_tools"}
NO_KEYS = {"OPENAI_API_KEY": "", "ANTHROPIC_API_KEY": ""}


@pytest.mark.parametrize("name", NAMES)
def test_an_example_prints_what_its_reader_is_to_see(name):
    printed = run_example("-W", "error", str(EXAMPLES / f"{name}.py"), **NO_KEYS)

    assert printed == (PRINTED / f"{name}.txt").read_text(encoding="utf-8")


def test_every_example_is_run_by_a_test():
    assert {path.stem for path in EXAMPLES.glob("*.py")} == {*NAMES, *ELSEWHERE, "model"}


@pytest.mark.parametrize("provider", ["openai", "anthropic"])
def test_an_example_asks_a_real_model_where_there_is_a_key(api: LoopbackApi, provider: str):
    api.script(*[Reply("No.")] * 3)
    name, url = provider.upper(), api.openai_url if provider == "openai" else api.url
    keys = NO_KEYS | {f"{name}_API_KEY": "k", f"{name}_BASE_URL": url, f"{name}_MODEL": "m"}

    said = run_example(str(EXAMPLES / "chat_quickstart.py"), **keys)

    assert [line.split()[-1] for line in said.splitlines()] == ["No."] * 3
    assert api.refusals == []
