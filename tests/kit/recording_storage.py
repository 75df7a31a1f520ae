"""A storage that notes which of its methods are called, in order: as an intruder who measures time would see it."""

from typing import Any, cast

from toolsearch.storage.sql import SqlStore
from toolsearch.storage.storage import Storage

# Done once a minute, for whoever asks, and again and again while a lease is held.
_BEHIND_THE_REQUEST = frozenset({"keys.note_use", "leases.renew"})


class RecordingStorage:
    """*asked* has the port and method of each call. Put it in front of a storage with `wrap` of the service's kit."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __call__(self, storage: Storage) -> Storage:
        return cast("Storage", _Recorded(storage, "", self.asked))


class _Recorded:
    def __init__(self, inner: Any, name: str, asked: list[str]) -> None:
        self._inner = inner
        self._name = name
        self._asked = asked

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._inner, name)
        place = f"{self._name}.{name}" if self._name else name
        if not callable(value):
            return _Recorded(value, place, self._asked) if _is_port(value) else value

        def called(*arguments: Any, **options: Any) -> Any:
            if place not in _BEHIND_THE_REQUEST:
                self._asked.append(place)
            answer = value(*arguments, **options)
            return _Recorded(answer, place, self._asked) if _is_port(answer) else answer

        return called


def _is_port(value: object) -> bool:
    return isinstance(value, SqlStore)
