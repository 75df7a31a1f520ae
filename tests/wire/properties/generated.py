"""Made-up values for the formats: JSON, schemas, definitions, calls, results and answers."""

from base64 import b64encode
from typing import Any

from hypothesis import strategies as st

from toolsearch.tools.calls import ToolCall
from toolsearch.tools.definition import ToolDefinition
from toolsearch.wire.answers import Usage

TEXTS = st.text(max_size=12)
SAID = TEXTS.filter(str.strip)  # what says something: empty texts are refused by some APIs
NAMES = st.text("abcdefghijklmnopqrstuvwxyzABCXYZ0123456789_-", min_size=1, max_size=20)
IDS = st.text(min_size=1, max_size=12)
SCALARS = st.none() | st.booleans() | st.integers() | TEXTS
JSON = st.recursive(
    SCALARS, lambda each: st.lists(each, max_size=3) | st.dictionaries(TEXTS, each, max_size=3), max_leaves=8
)
OBJECTS = st.dictionaries(TEXTS, JSON, max_size=4)

_LEAVES = st.sampled_from(
    [{}, {"type": "string"}, {"type": "integer", "minimum": 0}, {"enum": ["a", None, 3]}, {"$ref": "#/$defs/d"}]
)
_DEEP = st.recursive(
    _LEAVES,
    lambda each: (
        st.builds(
            lambda properties: {"type": "object", "properties": properties}, st.dictionaries(NAMES, each, max_size=2)
        )
        | st.builds(lambda items: {"type": "array", "items": items}, each)
        | st.builds(lambda branches: {"anyOf": branches}, st.lists(each, min_size=1, max_size=2))
    ),
    max_leaves=5,
)


@st.composite
def plain_schemas(draw: st.DrawFn) -> dict[str, Any]:
    """Schemas of objects that every API takes as they are."""
    properties = draw(st.dictionaries(NAMES, _DEEP, max_size=3))
    required = draw(st.lists(st.sampled_from(sorted(properties)), unique=True)) if properties else []
    more = draw(st.fixed_dictionaries({}, optional={"description": TEXTS}))
    if "#/$defs/d" in str(properties):
        more["$defs"] = {"d": {"type": "string"}}
    return {"type": "object", "properties": properties, **({"required": required} if required else {}), **more}


@st.composite
def odd_schemas(draw: st.DrawFn) -> dict[str, Any]:
    """What servers send besides: alternatives at the root, and roots without properties or a type."""
    root = dict(draw(plain_schemas()))
    for key in draw(st.sets(st.sampled_from(["type", "properties", "required"]))):
        root.pop(key, None)
    for key in draw(st.sets(st.sampled_from(["anyOf", "oneOf", "allOf"]))):
        root[key] = draw(st.lists(plain_schemas() | st.booleans(), max_size=2))
    return root


PLAIN_DEFINITIONS = st.builds(ToolDefinition, NAMES, description=TEXTS, input_schema=plain_schemas())
DEFINITIONS = st.builds(
    ToolDefinition,
    NAMES,
    description=TEXTS,
    input_schema=plain_schemas() | odd_schemas(),
    title=TEXTS,
    output_schema=st.none() | plain_schemas(),
    annotations=st.dictionaries(st.sampled_from(["readOnlyHint", "destructiveHint"]), st.booleans()),
)

ARGUMENTS = st.one_of(TEXTS, OBJECTS, st.just("{}"), st.just('{"a": [1, "é"]}'), st.just('{"half": '))
CALLS = st.builds(ToolCall, IDS, NAMES, ARGUMENTS)

BASE64 = st.binary(min_size=1, max_size=8).map(lambda data: b64encode(data).decode())


def text(said: str) -> dict[str, Any]:
    return {"type": "text", "text": said}


IMAGES = st.builds(
    lambda mime, data: {"type": "image", "data": data, "mimeType": mime},
    st.sampled_from(["image/png", "image/jpeg", "image/gif", "image/webp"]),
    BASE64,
)
# What no model API has a place for.
_FOREIGN: st.SearchStrategy[dict[str, Any]] = st.one_of(
    st.builds(lambda data: {"type": "audio", "data": data, "mimeType": "audio/wav"}, BASE64),
    st.builds(lambda data: {"type": "image", "data": data, "mimeType": "image/tiff"}, BASE64),
    st.builds(lambda said: {"type": "resource", "resource": {"uri": "file:///a", "text": said}}, TEXTS),
    st.builds(lambda data: {"type": "resource", "resource": {"uri": "x:y", "blob": data}}, BASE64),
    st.builds(lambda name: {"type": "resource_link", "uri": "https://example.com", "name": name}, NAMES),
)
BLOCKS = st.lists(st.builds(text, TEXTS) | IMAGES | _FOREIGN, max_size=3).map(tuple)

USAGES = st.builds(
    lambda fresh, output, cached, written: Usage(fresh + cached + written, output, cached, written),
    *[st.integers(0, 10**9)] * 4,
)
