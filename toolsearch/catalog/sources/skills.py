"""A folder of skills as a source: each folder in it with a ``SKILL.md`` is one.

Nothing outside of the folder is read: symbolic links are not followed. Hidden files are no part of a skill.
"""

from __future__ import annotations

import os
import stat
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Final
from urllib.parse import quote

from toolsearch.catalog.source import LoadReport
from toolsearch.documents.skills import (
    MOST_BYTES,
    MOST_INSTRUCTIONS,
    SKILL_FILE,
    Skill,
    SkillFile,
    digest_of,
    is_inside,
    require_size,
    skill_output,
    split_frontmatter,
)
from toolsearch.errors import BadToolError, ChangedSkillError, SourceError
from toolsearch.tools.definition import Refusal, Tool, ToolContext, ToolMetadata
from toolsearch.tools.json_types import JsonObject
from toolsearch.tools.naming import all_namespaced
from toolsearch.tools.results import ToolOutput

_MOST_ENTRIES: Final = 100_000  # files and folders that are looked at; a whole disk is meant by mistake
_LEFT_OUT: Final = frozenset({"__pycache__", "node_modules"})  # written when a script of a skill runs
_LAST: Final = "\U0010ffff"  # after every other character
_OPEN: Final = os.O_RDONLY | sum(getattr(os, flag, 0) for flag in ("O_NOFOLLOW", "O_NONBLOCK", "O_BINARY"))


class SkillsSource:
    """The skills of a folder and of all folders in it, named ``<server>__<skill>``.

    Skills of one name are told apart by the folders above them: ``<server>__billing_refunds``. A skill inside another
    is a skill itself, and its files are also files of the other. A file is read when it is asked for, and has to be as
    it was when the skills were loaded.

    server  "": the name of the folder
    """

    def __init__(self, folder: str | Path, *, server: str = "") -> None:
        self._folder = Path(folder).expanduser()
        self._server = server or self._folder.resolve().name
        self.description = f"skills of {self._folder}"

    def load(self) -> LoadReport:
        """Raises SourceError if the folder cannot be read or holds no skill."""
        tree = _Tree(self._folder)
        skills, refused = dict[str, tuple[Skill, str]](), list[Refusal]()
        for below in tree.skills:
            try:
                skills[below] = tree.skill(below)
            except BadToolError as error:
                refused.append(self._refusal(below, str(error)))
        refused += [self._refusal(path, fault) for path, fault in tree.strays()]
        if not skills and not refused:
            raise SourceError(f"{self._folder} holds no skill: no folder in it has a {SKILL_FILE}")
        names = _told_apart(self._server, {below: tree.steps(below) for below in skills})
        tools = [self._tool(tree, below, *read, names[below]) for below, read in skills.items()]
        return LoadReport(tuple(tools), tuple(refused))

    def close(self) -> None:
        """Does nothing, because nothing is open."""

    def _tool(self, tree: _Tree, below: str, skill: Skill, instructions: str, name: str) -> Tool:
        callback = SkillCallback(skill, tree.folder / below, f"the folder {self._server}")
        definition = skill.definition(name, self._server, instructions)
        source = str(self._folder / below / SKILL_FILE)
        return Tool(definition, callback, ToolMetadata(loads_tools=True), source)

    def _refusal(self, path: str, reason: str) -> Refusal:
        return Refusal(_in_unicode(path.rstrip("/")) or self._server, str(self._folder), _in_unicode(reason))


@dataclass(frozen=True, slots=True)
class SkillCallback:
    """Reads the files of one skill in *folder*; *origin* tells the model whose they are."""

    skill: Skill
    folder: Path
    origin: str

    def call(self, arguments: JsonObject, context: ToolContext) -> ToolOutput:  # noqa: ARG002
        """Raises BadArgumentsError for a file that the skill lacks, and ChangedSkillError for one that has changed."""
        file = self.skill.file(arguments.get("file") or SKILL_FILE)
        try:
            data = _read(self.folder / file.path, file.size)
        except BadToolError:
            raise ChangedSkillError(self.skill.name, file.path) from None
        return skill_output(self.skill, file, data, origin=self.origin)


class _Tree:
    """The files in a folder, by their paths from there. The path of a folder ends with ``/``; "" is the first one.

    skills  the folders that have a SKILL.md, sorted
    """

    def __init__(self, folder: Path) -> None:
        """Raises SourceError if *folder* cannot be read."""
        self.folder = folder.resolve()
        self._sizes: dict[str, int] = {}  # path -> bytes of the file
        self._faults: dict[str, str] = {}  # path -> the reason why it cannot be a file of a skill
        self._seen = 0
        waiting = [""]
        while waiting:
            waiting += self._folders_in(waiting.pop())
        if "" in self._faults:
            raise SourceError(f"{folder} holds no skills that can be read: {self._faults['']}")
        self._files, self._faulty = sorted(self._sizes), sorted(self._faults)
        self.skills = sorted(_folder_of(path) for path in self._files if _file_name(path) == SKILL_FILE)

    def _folders_in(self, below: str) -> list[str]:
        """Note the files in the folder *below*, and return the folders in it."""
        folders: list[str] = []
        try:
            with os.scandir(self.folder / below) as entries:
                for entry in entries:
                    if entry.name.startswith(".") or entry.name in _LEFT_OUT:
                        continue
                    self._count()
                    path = f"{below}{entry.name}"
                    if entry.is_symlink():
                        self._faults[path] = "symbolic links are not followed; put a copy there"
                    elif entry.is_dir(follow_symlinks=False):
                        folders.append(f"{path}/")
                    else:
                        self._sizes[path] = entry.stat(follow_symlinks=False).st_size
        except OSError as error:
            self._faults[below] = f"the folder cannot be read: {error.strerror}"
        return folders

    def _count(self) -> None:
        self._seen += 1
        if self._seen > _MOST_ENTRIES:
            raise SourceError(f"{self.folder} has more than {_MOST_ENTRIES:,} files; give the folder of the skills")

    def steps(self, below: str) -> list[str]:
        """The names of the folders that lead to a skill. If the given folder
        itself is a skill, its own name comes first.
        """
        steps = below.split("/")[:-1]
        return [self.folder.name, *steps] if self.skills[0] == "" else steps

    def skill(self, below: str) -> tuple[Skill, str]:
        """Read the skill in the folder *below*, and its instructions. Raises BadToolError, which says what is wrong
        with it.
        """
        paths, steps = _starting_with(below, self._files), self.steps(below)
        self._require_whole(below, paths)
        data = self._data(f"{below}{SKILL_FILE}", MOST_INSTRUCTIONS)
        try:
            frontmatter, instructions = split_frontmatter(data.decode())
        except UnicodeDecodeError as error:
            raise BadToolError(f"its {SKILL_FILE} is not UTF-8: {error.reason} at byte {error.start}") from error
        if (name := frontmatter.get("name")) != steps[-1]:
            raise BadToolError(f"the folder is named {steps[-1]!r} and the skill {name!r}; both need the same name")
        root = f"skill://{quote('/'.join(steps))}/"
        files = [
            _listed(path.removeprefix(below), data if path == f"{below}{SKILL_FILE}" else self._data(path), root)
            for path in paths
        ]
        return Skill.of_files(f"{root}{SKILL_FILE}", frontmatter, files), instructions

    def _require_whole(self, below: str, paths: Sequence[str]) -> None:
        """Raise BadToolError unless the files *paths* are all that is in the folder *below*, and can be listed."""
        for path in _starting_with(below, self._faulty):
            raise BadToolError(f"{path.removeprefix(below)}: {self._faults[path]}")
        require_size(len(paths), sum(self._sizes[path] for path in paths))
        alike: dict[str, str] = {}
        for path in paths:
            if not is_inside(path):
                raise BadToolError(f"{path!a} cannot be written in one line of text")
            if (other := alike.setdefault(path.casefold(), path)) != path:
                raise BadToolError(f"{other} and {path} are one file where upper and lower case are the same")

    def _data(self, path: str, most: int = MOST_BYTES) -> bytes:
        return _read(self.folder / path, most)

    def strays(self) -> Iterator[tuple[str, str]]:
        """Files outside every skill that look like one, each with the reason why it was not taken."""
        skills = set(self.skills)
        for path in self._files:
            if _file_name(path).upper() == SKILL_FILE.upper() and _folder_of(path) not in skills:
                yield _folder_of(path), f"{_file_name(path)} has to be named {SKILL_FILE}"
        for path in self._faulty:
            if skills.isdisjoint(_folders_above(path)):
                yield path, self._faults[path]


def _listed(name: str, data: bytes, root: str) -> SkillFile:
    return SkillFile(name, digest_of(data), len(data), f"{root}{quote(name)}")


def _file_name(path: str) -> str:
    return path.rpartition("/")[2]


def _folder_of(path: str) -> str:
    return path.removesuffix(_file_name(path))


def _folders_above(path: str) -> Iterator[str]:
    """The folders that *path* is in: ``""``, ``a/`` and ``a/b/`` of ``a/b/c``."""
    yield ""
    yield from (path[:end] for end in range(1, len(path)) if path[end - 1] == "/")


def _starting_with(prefix: str, paths: Sequence[str]) -> Sequence[str]:
    """The *paths* that start with *prefix*, out of sorted ones."""
    return paths[bisect_left(paths, prefix) : bisect_left(paths, f"{prefix}{_LAST}")]


def _read(path: Path, most: int) -> bytes:
    """The bytes of a file. Raises BadToolError for more than *most*, for a link, and if it cannot be read."""
    try:
        with os.fdopen(os.open(path, _OPEN), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise BadToolError(f"{path.name} is no file")
            data = file.read(most + 1)
    except OSError as error:
        raise BadToolError(f"{path.name} cannot be read: {error.strerror}") from error
    if len(data) > most:
        raise BadToolError(f"{path.name} has more than {most:,} bytes, and that is too many")
    return data


def _told_apart(server: str, steps: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """The name in a catalog of each skill, which has the *steps* that lead to it."""
    alike: defaultdict[str, dict[str, Sequence[str]]] = defaultdict(dict)
    for key, each in steps.items():
        alike[each[-1]][key] = each
    ends = {key: end for those in alike.values() for key, end in _distinct_ends(those).items()}
    names = all_namespaced(server, ends.values())
    return {key: names[end] for key, end in ends.items()}


def _distinct_ends(steps: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """The last of the steps of each, as many as make all of them differ."""
    ends = ({key: "/".join(each[-last:]) for key, each in steps.items()} for last in count(1))
    return next(each for each in ends if len(set(each.values())) == len(each))


def _in_unicode(text: str) -> str:
    """*text* with the bytes of a name that is not UTF-8 escaped."""
    return text.encode(errors="backslashreplace").decode()
