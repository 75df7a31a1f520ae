"""No judge breaks down over a request with something strange anywhere in it."""

import copy
import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, cast

import pytest

from tests.kit.strict.sample_requests import GOOD, Json, Judge

STRANGE: tuple[Any, ...] = (None, True, -1, "", [], {}, [None], {"type": None}, {"type": []})


def with_each_place_spoilt(value: Any) -> Iterator[Any]:
    """Copies of the value, each with one inner value replaced by something strange."""
    entries: Iterable[tuple[Any, Any]] = ()
    if isinstance(value, dict):
        entries = cast("dict[str, Any]", value).items()
    elif isinstance(value, list):
        entries = enumerate(cast("Sequence[Any]", value))
    for key, inner in entries:
        for other in (*STRANGE, *with_each_place_spoilt(inner)):
            spoilt: Any = copy.copy(cast("Any", value))
            spoilt[key] = other
            yield spoilt


SHORT = [case for case in GOOD if len(json.dumps(case.values[1])) <= 5_000]


@pytest.mark.parametrize(("judge", "request_body"), SHORT)
def test_strange_values_anywhere_raise_nothing(judge: Judge, request_body: Json) -> None:
    for spoilt in islice(with_each_place_spoilt(request_body), 600):
        assert all(judge(spoilt)), "every reason has words"
