"""Whether the types of the official SDKs take what we write."""

from functools import cache
from typing import Any

from pydantic import TypeAdapter


def accepted(kind: Any, written: Any) -> None:
    """Raise unless the SDK's type takes *written*; its lists are read to the end, which its types do not do."""
    adapter = _adapter(kind)
    adapter.dump_python(adapter.validate_python(written), warnings=False)


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    """Building one takes up to a quarter of a second."""
    return TypeAdapter(kind)
