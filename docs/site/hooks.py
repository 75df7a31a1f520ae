"""What the site has beside the pages in ``docs/``: the full reference, and the files of the repository that are linked.

The reference has a page for each section of ``api-*.md``, with the signatures and
docstrings of the names there. A type in signatures has no public module, and is looked up at the place that its row
names. A file outside ``docs/`` that a page links to is shown as ``repository/<path>``.
"""

from __future__ import annotations

import logging
import posixpath
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import griffe
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[2]
_OUTSIDE = "repository/"
_LINK = re.compile(r"(\]\(|\bsrc(?:set)?=\")([^)\s\"#:]+)(#[^)\"]*)?(?=[)\"])")
_SECTION = re.compile(r"^## (?P<title>.+)\n(?P<body>(?:(?!^## ).*\n?)*)", re.MULTILINE)
_ROW = re.compile(r"^\|`(?P<name>\w+)`\|[a-z ]+\|(?:`(?P<place>[\w.=()]+)`\|)?", re.MULTILINE)
_OF_THE_CLIENT = re.compile(r"^- `(\w+)`", re.MULTILINE)
_CLIENT = "## The client of the service\n"
_ERRORS = "toolsearch.errors"
_LISTS = ("api-names.md", "api-modules.md", "api-signatures.md")
_LANGUAGES = {".json": "json", ".py": "python", ".toml": "toml", ".yaml": "yaml", ".yml": "yaml"}
_PICTURES = {".gif", ".jpg", ".png", ".svg"}


def on_startup(**_: object) -> None:
    """Let a strict build fail with --quiet, too: MkDocs would drop the warnings before it counts them."""
    log = logging.getLogger("mkdocs")
    log.setLevel(min(log.getEffectiveLevel(), logging.WARNING))


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    for uri, text in _reference():
        files.append(File.generated(config, uri, content=text))
    for target in sorted(_linked_outside(files)):
        path = ROOT / target
        if path.suffix in _PICTURES:
            files.append(File.generated(config, _uri(target), content=path.read_bytes()))
        else:
            files.append(File.generated(config, _uri(target), content=_shown(target)))
    return files


def on_page_markdown(markdown: str, *, page: Page, **_: object) -> str:
    uri = page.file.src_uri
    if uri.startswith((_OUTSIDE, "reference/")):
        page.meta.setdefault("search", {"boost": 0.3})  # guides come first
    if uri in _LISTS:
        markdown = _with_links_to_reference(markdown)

    def relative(link: re.Match[str]) -> str:
        target = _target(uri, link[2])
        return f"{link[1]}{posixpath.relpath(_uri(target), posixpath.dirname(uri) or '.')}{link[3] or ''}"

    return _LINK.sub(lambda link: relative(link) if _is_file(uri, link[2]) else link[0], markdown)


def _with_links_to_reference(listing: str) -> str:
    paths = {name: path for _, names in _sections() for name, path in names.items()}
    listing = _ROW.sub(
        lambda row: row[0].replace(f"`{row['name']}`", f"[`{row['name']}`][{paths[row['name']]}]", 1), listing
    )
    return _OF_THE_CLIENT.sub(lambda row: f"- [`{row[1]}`][{paths[row[1]]}]", listing)


def _reference() -> Iterator[tuple[str, str]]:
    """Each page of the full reference: its address, and its text."""
    for title, names in _sections():
        slug = re.sub(r"\W+", "-", title.lower()).strip("-")
        yield f"reference/{slug}.md", "\n\n".join([f"# {title}", *(f"::: {path}" for path in names.values())])


def _sections() -> Iterator[tuple[str, dict[str, str]]]:
    """The title of each section that lists names, and the full path of each name."""
    listing = "\n".join((ROOT / "docs" / page).read_text(encoding="utf-8") for page in _LISTS)
    known: dict[str, str] = {}
    for section in _SECTION.finditer(listing):
        title = section["title"]
        module = title.split("`")[1] if "`" in title else "toolsearch"
        names = {row["name"]: f"{module}.{row['name']}" for row in _ROW.finditer(section["body"])}
        if module == _ERRORS:  # which are listed by code, on a page of their own
            members = _sources()[module].members
            names = {name: f"{module}.{name}" for name in members if name.endswith("Error")}
        if section[0].startswith(_CLIENT):
            names = {name: f"toolsearch.client.{name}" for name in _OF_THE_CLIENT.findall(section["body"])}
        met = {row["name"]: row["place"] for row in _ROW.finditer(section["body"]) if row["place"]}
        names = {name: _met_at(met, name, known) for name in met} if met else names
        known |= names
        if names:
            yield title.partition(":")[0], names


def _met_at(met: Mapping[str, str], name: str, known: Mapping[str, str]) -> str:
    """The full path of the type *name*: what it is called in the signature of the place where it is met."""
    owner, _, member = met[name].partition("(")[0].partition(".")
    path = known[owner] if owner in known else _met_at(met, owner, known)
    thing = _sources()[path]
    if member or met[name].endswith("=)"):
        thing = thing.all_members[member or "__init__"]
    if thing.is_function:
        annotations = [thing.returns, *(each.annotation for each in thing.parameters)]
    else:
        annotations = [thing.annotation]
    for annotation in annotations:
        for each in annotation.iterate(flat=True) if isinstance(annotation, griffe.Expr) else ():
            if isinstance(each, griffe.ExprName) and each.name == name:
                return each.canonical_path
    raise ValueError(f"docs/api-signatures.md: the signature of {met[name]} does not name {name}")


@cache
def _sources() -> griffe.ModulesCollection:
    loader = griffe.GriffeLoader(search_paths=[ROOT, ROOT / "indexes"])
    for package in ("toolsearch", "toolsearch_indexes"):
        loader.load(package, try_relative_path=False)
    loader.resolve_aliases()
    return loader.modules_collection


def _linked_outside(files: Files) -> set[str]:
    """The paths outside ``docs/``, from the root, that pages link to, or that what they link to links to."""
    found: set[str] = set()
    unread = [(file.src_uri, file.content_string) for file in files.documentation_pages()]
    while unread:
        uri, text = unread.pop()
        for link in _LINK.finditer(text):
            target = _target(uri, link[2])
            if _is_file(uri, link[2]) and not target.startswith("docs/") and target not in found:
                found.add(target)
                if target.endswith(".md"):
                    unread.append((_uri(target), (ROOT / target).read_text(encoding="utf-8")))
    return found


def _target(uri: str, link: str) -> str:
    """The path, from the root of the repository, of what the page at *uri* links to."""
    source = uri.removeprefix(_OUTSIDE) if uri.startswith(_OUTSIDE) else f"docs/{uri}"
    target = posixpath.normpath(posixpath.join(posixpath.dirname(source), link))
    readme = f"{target}/README.md"
    return readme if (ROOT / readme).exists() else target


def _is_file(uri: str, link: str) -> bool:
    target = _target(uri, link)
    return not target.startswith("..") and (ROOT / target).exists()


def _uri(target: str) -> str:
    """Where the site has *target*, a path from the root of the repository."""
    if target.startswith("docs/"):
        return target.removeprefix("docs/")
    path = ROOT / target
    suffix = "" if path.suffix in {*_PICTURES, ".md"} else ".md"
    return f"{_OUTSIDE}{target}{suffix}"


def _shown(target: str) -> str:
    path = ROOT / target
    if path.suffix == ".md":
        return path.read_text(encoding="utf-8")
    parts = [f"# {target}"]
    for file in sorted(each for each in path.iterdir() if each.is_file()) if path.is_dir() else [path]:
        title = f"## {file.name}\n\n" if path.is_dir() else ""
        parts.append(f"{title}`````{_LANGUAGES.get(file.suffix, 'text')}\n{file.read_text(encoding='utf-8')}\n`````")
    return "\n\n".join(parts)
