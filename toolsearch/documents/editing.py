"""Changes files that people and other programs change too: one program at a time, and each file as a whole."""

from __future__ import annotations

import codecs
import shutil
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from toolsearch.errors import SourceError

_WAIT_S, _MOST_WAITS = 0.05, 100  # for another program that is changing the same file
_ANYBODY_WRITES: Final = 0o222  # bits of a file's mode; root may write a file that has none of them


def text_of(path: Path) -> str:
    """The text of the file, with its own line ends; "" if there is none."""
    return path.read_bytes().decode("utf-8-sig") if path.exists() else ""


def edit(path: Path, change: Callable[[str], str]) -> bool:
    """Let *change* make the text of *path* another one. Return whether it is.

    Programs that use this change a file one after the other. Raises SourceError if the file cannot be changed, or if
    another program has changed it meanwhile.
    """
    with claimed(path) as (target, fresh):
        try:
            before = text_of(target)
            after = change(before)
        except (SourceError, UnicodeDecodeError) as error:
            raise SourceError(f"{path} is left as it is: {error}") from error
        if after == before:
            fresh.unlink()
            return False
        if text_of(target) != before:
            raise SourceError(f"{path} is left as it is: another program has just changed it; try again")
        put(target, fresh, after)
        return True


@contextmanager
def claimed(path: Path) -> Generator[tuple[Path, Path]]:
    """The file at *path*, and an empty file beside it that only one program can have. The block moves or deletes it.

    Raises SourceError if the file is read-only, or if another program has it for more than a few seconds.
    """
    target = path.resolve()  # a link stays, and the file that it points to is replaced
    fresh = target.with_name(f".{target.name}.new")
    patience = iter(range(_MOST_WAITS))
    while True:
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            if target.exists() and not target.stat().st_mode & _ANYBODY_WRITES:
                raise SourceError(f"{path} is left as it is: it is read-only")
            fresh.touch(mode=0o600, exist_ok=False)  # an entry may hold a secret
            break
        except FileExistsError:
            if next(patience, None) is None:
                reason = f"another program is changing it; if none is, delete {fresh}"
                raise SourceError(f"{path} is left as it is: {reason}") from None
            time.sleep(_WAIT_S)
        except OSError as error:
            raise SourceError(f"{path} is left as it is: {error.strerror}") from error
    try:
        yield target, fresh
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise


def put(target: Path, fresh: Path, text: str) -> None:
    """Let *target* be *text*, which is written to *fresh* first, with the mark and the mode of the old file."""
    mark = codecs.BOM_UTF8 if target.exists() and target.read_bytes().startswith(codecs.BOM_UTF8) else b""
    fresh.write_bytes(mark + text.encode())
    if target.exists():
        shutil.copymode(target, fresh)
    fresh.replace(target)
