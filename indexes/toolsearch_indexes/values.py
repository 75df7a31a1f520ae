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

_PIECE = re.compile(r"[^\s\"'`<>()\[\]{},;|\u00ab\u00bb\u2018-\u201f]+")
_SIGNS = re.compile(r"[/\\@.]|[0-9a-f]{7}")  # a quick check, since most requests have none of these
_AFTER = ".!?:"  # marks at the end of a piece that belong to the sentence

# Each pattern reads a piece once, so that a long one takes time in proportion to its length.
_URL = re.compile(r"[a-z][a-z0-9+.-]{1,10}://|www\.|git@|[a-z0-9.-]{1,64}\.[a-z]{2,6}/", re.IGNORECASE)
_EMAIL = re.compile(r"[\w.+-]{1,64}@[\w-]+\.[\w.-]+$")
_PATH = re.compile(r"(?:~|\.{1,2}|[A-Za-z]:)?[/\\][\w.]|[\w.-]+[/\\]$")
_ID = re.compile(
    r"arn:|[0-9a-f]{4,12}(?:-[0-9a-f]{4,12}){2,}$"
    r"|(?:[a-z]{1,8}-)?(?=\d*[a-f])(?=[a-f]*\d)[0-9a-f]{7,64}$",
    re.IGNORECASE,
)
_PRODUCT = re.compile(r"[A-Z][A-Za-z0-9]*\.js$")  # Next.js


def without_values(request: str, is_name: Callable[[str], bool] = lambda _: False) -> str:
    """Return *request* with the words for its kind in place of each value: ``read file`` for ``read ./app/server.py``.

    A piece is no value if *is_name* says that it is a tool's name.
    """
    if not _SIGNS.search(request):
        return request
    return _PIECE.sub(lambda found: _spoken(found.group(), is_name), request)


def _spoken(piece: str, is_name: Callable[[str], bool]) -> str:
    bare = piece.rstrip(_AFTER)
    kind = kind_of(bare)
    return kind + piece[len(bare) :] if kind and not is_name(bare) else piece


@lru_cache(maxsize=1_000)
def kind_of(piece: str) -> str:
    """The words for the kind of the value that *piece* is; empty if it is none."""
    if _EMAIL.match(piece):
        return "email address"
    if _URL.match(piece):
        return "git repository URL" if piece.endswith(".git") else "web page URL"
    if not _PRODUCT.match(piece):
        stem, _, ending = piece.rpartition(".")
        if stem and ending.lower() in _FORMATS:
            return f"{ending} file"
        if stem and ending.lower() in _PLAIN:
            return "file"
    if _PATH.match(piece):
        return "directory"
    return "id" if _ID.match(piece) else ""
