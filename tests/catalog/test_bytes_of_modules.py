"""Functions of bytes, from the modules of the standard library, called as a model calls them."""

import hashlib
import json
import pickle
import zlib
from typing import Any

import pytest

from tests.kit.strict.one_tool import problems_of_tool
from toolsearch import Catalog, Session, ToolSearch
from toolsearch.tools.definition import Tool
from toolsearch.wire.formats import render_definition

ABC_SHA256 = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
NO_TEXT = {"base64": "/wD+"}  # bytes ff 00 fe


@pytest.fixture(scope="module")
def session() -> Session:
    catalog = Catalog()
    for module in ("base64", "hashlib", "hmac", "zlib", "binascii"):
        for tool in Catalog.from_module(module).tools():
            catalog.add(tool)
    return ToolSearch(catalog, encoder=None).session("a")


async def called(session: Session, name: str, /, **arguments: Any) -> Any:
    """What a model of Chat Completions reads: a text, or the object in it."""
    function = {"name": name.replace(".", "__"), "arguments": json.dumps(arguments)}
    (message,) = await session.execute({"role": "assistant", "tool_calls": [{"id": "1", "function": function}]})
    text: str = message["content"]
    return json.loads(text) if text.startswith('{"') else text


@pytest.mark.parametrize(
    ("name", "arguments", "result"),
    [
        ("zlib.crc32", {"data": "abc"}, "891568578"),
        ("zlib.crc32", {"data": {"base64": "YWJj"}}, "891568578"),
        ("zlib.adler32", {"data": "abc"}, "38600999"),
        ("binascii.crc_hqx", {"data": "abc", "crc": 0}, "40406"),
        ("hashlib.sha256", {"string": "abc"}, ABC_SHA256),
        ("hashlib.sha256", {"string": {"base64": "YWJj"}}, ABC_SHA256),
        ("hashlib.md5", {"string": "é"}, "66ddcd97cfdeabb2f6fb8a999b4bc76f"),
        ("hashlib.md5", {}, "d41d8cd98f00b204e9800998ecf8427e"),
        ("base64.b64encode", {"s": NO_TEXT, "altchars": "-_"}, "_wD-"),
        ("base64.urlsafe_b64encode", {"s": NO_TEXT}, "_wD-"),
        ("base64.b64decode", {"s": "/wD+"}, NO_TEXT),
        (
            "hmac.new",
            {"key": "key", "msg": "abc", "digestmod": "sha256"},
            "9c196e32dc0175f86f4b1cb89289d6619de6bee699e4c378e68309ed97a1a6ab",
        ),
        ("hmac.digest", {"key": "key", "msg": "abc", "digest": "md5"}, {"base64": "0v6YBj+HawMZOvtJtJeVkQ=="}),
        (
            "hashlib.pbkdf2_hmac",
            {"hash_name": "sha256", "password": "password", "salt": "salt", "iterations": 1, "dklen": 16},
            {"base64": "Eg+2z/z4syxD5yJSVsT4Nw=="},
        ),
    ],
)
async def test_a_text_or_base64_is_taken_and_a_digest_is_hexadecimal(
    session: Session, name: str, arguments: Any, result: Any
) -> None:
    assert await called(session, name, **arguments) == result


@pytest.mark.parametrize("name", sorted(hashlib.algorithms_guaranteed))
async def test_every_guaranteed_hash_can_be_called(session: Session, name: str) -> None:
    made: Any = hashlib.new(name, b"abc")
    sizes = {"shake_128": 32, "shake_256": 64}
    digest = made.hexdigest(*(size for shake, size in sizes.items() if shake == name))

    assert await called(session, "hashlib.new", name=name, data="abc") == digest
    if not name.startswith("blake2"):  # a class in hashlib
        assert await called(session, f"hashlib.{name}", string="abc") == digest


@pytest.mark.parametrize("data", ["abc" * 30, NO_TEXT], ids=["text", "other bytes"])
@pytest.mark.parametrize(
    ("encode", "decode"),
    [
        *((f"base64.{kind}encode", f"base64.{kind}decode") for kind in ("b64", "b32", "b32hex", "b16", "b85", "a85")),
        ("base64.standard_b64encode", "base64.standard_b64decode"),
        ("base64.urlsafe_b64encode", "base64.urlsafe_b64decode"),
        ("base64.encodebytes", "base64.decodebytes"),
        ("binascii.b2a_base64", "binascii.a2b_base64"),
        ("zlib.compress", "zlib.decompress"),
    ],
)
async def test_what_one_function_returns_can_be_given_to_its_reverse(
    session: Session, encode: str, decode: str, data: Any
) -> None:
    encode_tool, decode_tool = (session.resolve(name.replace(".", "__")) for name in (encode, decode))
    parameter, other = (next(iter(each.definition.input_schema["properties"])) for each in (encode_tool, decode_tool))

    encoded = await called(session, encode, **{parameter: data})
    assert encoded != data
    assert await called(session, decode, **{other: encoded}) == data


def test_of_these_modules_only_what_needs_a_live_object_is_refused() -> None:
    refused = {each.name for module in ("base64", "hashlib", "zlib") for each in Catalog.from_module(module).refused}
    files = {"base64__encode", "base64__decode", "hashlib__file_digest"}
    assert refused == {*files, "zlib__compressobj", "zlib__decompressobj"}


@pytest.mark.parametrize(
    ("value", "fault"),
    [
        (3, "data: expected string or object, got integer"),
        (["abc"], "data: expected string or object, got array"),
        ({"base64": "YWJj", "more": 1}, "data: unknown more (known: base64)"),
        ({"base64": "?"}, "data: the base64 is not valid"),
        ({"base64": "YQ"}, "data: the base64 is not valid"),  # its padding is missing
    ],
)
async def test_anything_else_is_refused_with_the_reason(session: Session, value: Any, fault: str) -> None:
    said = await called(session, "zlib.crc32", data=value)
    assert said.startswith("Error: ")
    assert fault in said


@pytest.fixture(scope="module")
def crc32() -> Tool:
    return Catalog.from_module("zlib").get("zlib__crc32")


@pytest.mark.parametrize("wire_format", ["openai", "openai-responses", "anthropic", "mcp"])
def test_every_api_takes_the_schema_and_the_model_reads_what_to_send(crc32: Tool, wire_format: Any) -> None:
    entry = render_definition(crc32.definition, wire_format)
    assert problems_of_tool(wire_format, entry) == []
    assert 'Text (as UTF-8), or {\\"base64\\": \\"...\\"} for other bytes.' in json.dumps(entry)


async def test_a_pickled_tool_takes_bytes_as_before(crc32: Tool) -> None:
    copy: Tool = pickle.loads(pickle.dumps(crc32))  # noqa: S301  made here
    session = ToolSearch(Catalog([copy]), encoder=None).session("a")
    assert await called(session, "zlib__crc32", data="abc") == str(zlib.crc32(b"abc"))


async def test_long_bytes_are_named_and_not_shown(session: Session) -> None:
    said = await called(session, "base64.b64decode", s="/w" * 4_000)
    assert said == "[resource (application/octet-stream, 6,000 bytes) left out: it cannot be sent here as text]"
