"""Which parameters without annotation take bytes, so that a model sends them as text or base64."""

from collections.abc import Callable
from typing import Any

import pytest

from toolsearch import ToolContext, tool_from_function
from toolsearch.tools.byte_parameters import BYTES_NOTE


def by_default(data=b"x"): ...


def by_name(key, other):
    """Sign it.

    key: bytes or buffer, The key.
    """


def by_article(key):
    """Sign it. Optional key should be a byte string of length 2."""


def by_verb(s):
    """Decode a bytestring of base-64 data."""


def of_the_second(n, s):
    """Decode a bytestring of base-64 data."""


def text_as_well(s):
    """Decode the bytes-like object or ASCII string s."""


def annotated(data: str = ""):
    """Send the bytes-like object data."""


def untold(data): ...


def fetch(url):
    """Download binary data from a URL."""


def image_of(number):
    """Return the binary data of an image."""


def send(message, to):
    """Send binary data to somebody."""


def bytes_of(function: Callable[..., Any]) -> list[str]:
    properties = tool_from_function(function).definition.input_schema["properties"]
    return [name for name, schema in properties.items() if "anyOf" in schema]


@pytest.mark.parametrize(
    ("function", "names"),
    [
        (by_default, ["data"]),
        (by_name, ["key"]),
        (by_article, ["key"]),
        (by_verb, ["s"]),
        (of_the_second, ["n"]),  # the first is taken for the verb's object
        (text_as_well, []),
        (annotated, []),
        (untold, []),
        (fetch, []),  # bytes are what it returns
        (image_of, []),
        (send, []),
    ],
)
def test_the_default_or_the_documentation_says_it(function: Callable[..., Any], names: list[str]) -> None:
    assert bytes_of(function) == names


async def test_a_parameter_that_may_be_none_takes_null_too_and_its_own_text_stays() -> None:
    def sign(key=None):
        """Sign it.

        Args:
            key: bytes or bytearray to sign with.
        """
        return repr(key)

    made = tool_from_function(sign)
    schema = made.definition.input_schema["properties"]["key"]
    assert schema["description"] == f"bytes or bytearray to sign with. {BYTES_NOTE}"
    results = [await made.callback.call(sent, ToolContext()) for sent in ({}, {"key": None}, {"key": "é"})]
    assert results == ["None", "None", repr("é".encode())]
