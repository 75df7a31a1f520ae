"""Values in a request: what a tool is to work on, such as a path or a URL, and not what it is to do.

The words of a value are no evidence: a request to read ``./issues/weather.py`` asks for neither issues nor weather. The
kind of the value is evidence, since a path speaks for tools that work on files. Numbers, dates and quoted texts stay as
they are: leaving them out was tried, and found no more.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

# Endings of file names. Those that also end domains or names of products (com, io, net, app) are left out. A format is
# named, since many tools are for one format. For source code, configuration and plain text any tool for files will do.
_FORMATS = frozenset(
    """
    7z avi bmp bz2 csv doc docx eps epub flac gif gpx gz heic html ico ics ipynb jar jpeg jpg json jsonl key m4a mkv mov
    mp3 mp4 mpeg odp ods odt ogg parquet pdf pem png ppt pptx psd rar rtf sql sqlite srt svg tar tex tgz tif tiff tsv
    ttf wav webm webp wmv xls xlsx xml xz yaml yml zip
    """.split()  # noqa: SIM905 - a list of a hundred strings does not read
)
_PLAIN = frozenset(
    """
    bak bash bat bin c cc cfg class conf cpp cs css dart db dll env exe go h hpp htm ini iso java js jsx kt lock log lua
    markdown md old php properties ps1 py r rb rs rst scala sh swift tf toml ts tsx txt vue whl zsh
    """.split()  # noqa: SIM905
)

# Names of products that look like files: Next.js, node.js
_PRODUCT = re.compile(
    r"[A-Z][A-Za-z0-9]*\.js$"
    r"|(?i:alpine|angular|backbone|chart|d3|deno|discord|ember|express|nest|next|node|nuxt|p5|react|socket|solid|svelte|three"
    r"|vue)\.js$"
)

# A piece ends where a script without spaces begins, since the rest of a request stands there without a space.
_NO_SPACES = "\u2e80-\u9fff\uac00-\ud7ff\uf900-\ufaff\uff00-\uffef"
_PIECE = re.compile(
    rf"[a-z][a-z0-9+.-]{{1,20}}://[^\s\"'`<>|{{}}{_NO_SPACES}]+"
    rf"|[^\s\"'`<>()\[\]{{}},;|\u00ab\u00bb\u2018-\u201f{_NO_SPACES}]+",
    re.IGNORECASE,
)
_SIGNS = re.compile(r"[/\\@.]|arn:|[0-9a-f]{4}-?[0-9a-f]{3}", re.IGNORECASE)  # quick, since most requests have none
_AFTER = ".!?:,;)]"  # marks at the end of a piece that belong to the sentence
_ROUTE = re.compile(r"\b(?:GET|POST|PUT|PATCH|DELETE|HEAD|OPTIONS)\s$")  # the path after it is that of an API
_BEFORE_ROUTE = 8  # characters

# Each pattern reads a piece once, so that a long one takes time in proportion to its length.
_SCHEME = re.compile(r"([a-z][a-z0-9]{1,20})[a-z0-9+.-]{0,20}://", re.IGNORECASE)
_URL = re.compile(r"www\.|[a-z0-9.-]{1,64}\.[a-z]{2,6}/", re.IGNORECASE)
_REPOSITORY = re.compile(r"git@|.{1,500}\.git$")
_EMAIL = re.compile(r"(?:mailto:)?[\w.+-]{1,64}@[\w-]+\.[\w.-]+$")
_AT_LINE = re.compile(r"(?::\d{1,6}){1,2}$|#L\d{1,6}$")
_PATH = re.compile(
    r"(?:~|\.{1,2}|[A-Za-z]:)?/[\w.]|[\w.-]+/$"
    r"|(?:~|\.{1,2}|[A-Za-z]:|\\)\\[\w.]|[\w.-]{2,100}\\[\w.-]{2}"  # with a backslash, which also begins escapes
)
_ARN = re.compile(r"arn:[\w-]*:([\w-]+):", re.IGNORECASE)
_ID = re.compile(
    r"[0-9a-f]{4,12}(?:-[0-9a-f]{4,12}){2,}$"
    r"|(?!\d+e\d+$)(?:[a-z]{1,8}-)?(?=\d*[a-f])(?=[a-f]*\d)[0-9a-f]{7,64}$",
    re.IGNORECASE,
)


def without_values(request: str, is_name: Callable[[str], bool] = lambda _: False) -> str:
    """Return *request* with the words for its kind in place of each value: ``read file`` for ``read ./app/server.py``.

    A piece is no value if *is_name* says that it is a tool's name, or if it is the path of an API's operation.
    """
    if not _SIGNS.search(request):
        return request
    return _PIECE.sub(lambda found: _spoken(found, is_name), request)


def _spoken(found: re.Match[str], is_name: Callable[[str], bool]) -> str:
    piece, text = found.group(), found.string
    bare = piece.rstrip(_AFTER)
    kind = kind_of(bare)
    if not kind or is_name(bare):
        return piece
    if kind == _DIRECTORY and (
        "{" in text[found.end() : found.end() + 1]
        or "}" in text[max(0, found.start() - 1) : found.start()]
        or _ROUTE.search(text[max(0, found.start() - _BEFORE_ROUTE) : found.start()])
    ):
        return piece
    return kind + piece[len(bare) :]


_DIRECTORY = "directory"
_LEAST_STEM = 2  # characters before an ending of one letter, so that "2.h" is no file


@lru_cache(maxsize=1_000)
def kind_of(piece: str) -> str:
    """The words for the kind of the value that *piece* is; empty if it is none."""
    return _address(piece) or _file(_AT_LINE.sub("", piece))


def _address(piece: str) -> str:
    if _EMAIL.match(piece):
        return "email address"
    found = _SCHEME.match(piece)
    scheme = found[1].lower() if found else ""
    if found and scheme == "file":
        return _file(piece[found.end() :]) or "file"
    if _REPOSITORY.match(piece):
        return "git repository URL"
    if scheme in ("http", "https") or (not scheme and _URL.match(piece)):
        return "web page URL"
    return f"{scheme} URL" if scheme else ""


def _file(piece: str) -> str:
    stem, _, ending = piece.rpartition(".")
    ending = ending.lower()
    if stem and ending in _FORMATS:
        return f"{ending} file"
    least = _LEAST_STEM if len(ending) == 1 else 1
    if ending in _PLAIN and len(stem) >= least and not _PRODUCT.match(piece):
        return "file"
    if _PATH.match(piece):
        return _DIRECTORY
    if arn := _ARN.match(piece):
        return f"{arn[1]} id"
    return "id" if _ID.match(piece) else ""
