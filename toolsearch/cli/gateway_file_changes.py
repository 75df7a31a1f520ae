"""Shows and makes the changes of clients' files: each file whole or not at all, with a copy of what was there."""

from __future__ import annotations

import codecs
import difflib
import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

from toolsearch.cli.output import line, print_diff, stderr
from toolsearch.tools.json_types import JsonObject

View: TypeAlias = Callable[[str], JsonObject]  # what people are shown of a file's text, without secrets


class FileChanges:
    """Files with their new texts, by the first change. A file may hold servers at several places."""

    def __init__(self) -> None:
        self._texts: dict[Path, str] = {}
        self._places: dict[Path, dict[str, View]] = {}

    def __bool__(self) -> bool:
        return bool(self._texts)

    def text_of(self, path: Path) -> str:
        """What *path* holds after the changes so far."""
        return self._texts[path] if path in self._texts else text_of(path)

    def put(self, path: Path, text: str, place: str, view: View) -> None:
        """Let *path* become *text*, which differs in what *view* shows; *place* says whose it is."""
        self._texts[path] = text
        self._places.setdefault(path, {})[place] = view

    def extend(self, others: FileChanges) -> None:
        self._texts |= others._texts
        self._places |= others._places

    def apply(self, *, write: bool) -> None:
        """Show the changes, and make them if *write*."""
        for path, text in self._texts.items():
            for place, view in self._places[path].items():
                _show(path, place, text, view)
            if write:
                backup = _replace(path, text)
                stderr().print(line(f"wrote {path}" + (f", the old one is {backup.name}" if backup else "")))
        if not write:
            stderr().print("Nothing is changed yet: --write does it.")


def text_of(path: Path) -> str:
    """The text of the file, with its own line ends; "" if there is none."""
    return path.read_bytes().decode("utf-8-sig") if path.exists() else ""


def backups(path: Path) -> list[tuple[int, Path]]:
    """The copies beside *path*, the oldest first."""
    name = re.compile(re.escape(path.name) + r"\.backup-([0-9]+)")
    return sorted((int(found[1]), each) for each in path.parent.iterdir() if (found := name.fullmatch(each.name)))


def _show(path: Path, place: str, after: str, view: View) -> None:
    old, new = (json.dumps(view(text), indent=2).splitlines() for text in (text_of(path), after))
    print_diff(difflib.unified_diff(old, new, str(path), f"{path} ({place})", lineterm=""))


def _replace(path: Path, text: str) -> Path | None:
    """Write *text* to *path*, with the mode it had; gives the copy of what was there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    target = path.resolve()  # if the path is a link, the file that it points to is replaced
    backup = _backup(target)
    fresh = target.with_name(f".{target.name}.new")
    fresh.touch(mode=0o600)  # an entry may hold a secret
    mark = codecs.BOM_UTF8 if target.exists() and target.read_bytes().startswith(codecs.BOM_UTF8) else b""
    fresh.write_bytes(mark + text.encode())
    if backup is not None:
        shutil.copymode(target, fresh)
    fresh.replace(target)
    return backup


def _backup(path: Path) -> Path | None:
    if not path.exists():
        return None
    number = 1 + max((each_number for each_number, _ in backups(path)), default=0)
    backup = path.with_name(f"{path.name}.backup-{number}")
    shutil.copy2(path, backup)
    return backup
