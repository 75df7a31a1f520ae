"""What commands print: text and tables for people or JSON for programs on stdout, everything else on stderr."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import ContextVar
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

FORMAT: Final = 1  # of every record that a command prints; keys are added, never renamed, or this counts up
_quiet: ContextVar[bool] = ContextVar("quiet", default=False)
_DIFF_STYLES = {"+": "green", "-": "red", "@": "cyan"}


def stdout() -> Console:
    from toolsearch.cli.console import console

    return console(is_stderr=False)


def stderr() -> Console:
    from toolsearch.cli.console import console

    return console(is_stderr=True)


def escape_what_cannot_be_written() -> None:
    """Let stdout and stderr write any text: characters that their encoding lacks are escaped."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def print_json(record: Mapping[str, Any]) -> None:
    """Print a command's record, which begins with the number of its format."""
    print_value({"format": FORMAT, **record})


def print_value(value: Any) -> None:
    """Print one JSON value, indented; characters that stdout cannot encode are escaped."""
    is_unicode = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    sys.stdout.write(json.dumps(value, indent=2, ensure_ascii=not is_unicode) + "\n")
    sys.stdout.flush()


def print_text(text: str) -> None:
    """Print *text*: unchanged to a file or a pipe, and without control characters to a terminal."""
    sys.stdout.write((legible(text) if sys.stdout.isatty() else text) + "\n")
    sys.stdout.flush()


def write_json(to: Path, record: Mapping[str, Any]) -> None:
    """Write to a file what `print_json` prints."""
    to.write_text(json.dumps({"format": FORMAT, **record}, indent=2) + "\n", encoding="utf-8")


def put_record(
    record: Callable[[], Mapping[str, Any]], show: Callable[[], None], *, as_json: bool, to: Path | None
) -> None:
    """Print the record if *as_json*, else *show* it to people; and write it to the file *to*, too, if there is one."""
    if to is not None:
        write_json(to, record())
    if as_json:
        print_json(record())
    else:
        show()


def put_text(to: str, text: str) -> None:
    """Print *text* if *to* is ``-``, otherwise write it to that file."""
    if to == "-":
        print_text(text.removesuffix("\n"))
    else:
        Path(to).write_text(text, encoding="utf-8")


def print_error(code: str, message: str, *, as_json: bool) -> None:
    if as_json:
        line = json.dumps({"format": FORMAT, "error": {"code": code, "message": message}})
    else:
        line = f"error [{code}]: {' '.join(legible(message).split())}"
    sys.stderr.write(line + "\n")


def be_quiet(*, wanted: bool = True) -> None:
    """Let `warn` and `tell` print nothing, and `stderr_is_watched` say no; for the rest of this command."""
    _quiet.set(wanted)


def tell(message: str) -> None:
    """Say on stderr what is no result and no warning."""
    if not _quiet.get():
        from rich.text import Text

        stderr().print(Text(legible(message)), soft_wrap=True)


def stderr_is_watched() -> bool:
    """Whether somebody sees a bar of progress."""
    return sys.stderr.isatty() and not _quiet.get()


def warn(message: str) -> None:
    if _quiet.get():
        return
    sys.stderr.write(f"warning: {' '.join(legible(message).split())}\n")


def legible(text: str) -> str:
    """Replace control characters: the text of a tool or server must not control the terminal."""
    return "".join(c if c.isprintable() or c in "\n\t" else "\N{REPLACEMENT CHARACTER}" for c in text)


def print_diff(rows: Iterable[str]) -> None:
    """Print the lines of a unified diff of JSON in ASCII, in which nothing is hidden."""
    from rich.text import Text

    for row in rows:
        stdout().print(Text(row, style=_DIFF_STYLES.get(row[:1], "")))


def line(text: str, style: str = "") -> Text:
    """Foreign text for a table: on one line, and never read as markup."""
    from rich.text import Text

    return Text(" ".join(legible(text).split()), style=style)


def table(title: str, columns: Sequence[str], *, numbers: Sequence[str] = (), flexible: str = "") -> Table:
    """A table of *columns*, those of *numbers* aligned right; where room is short, *flexible* is wrapped first."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    made = Table(title=title or None, title_justify="left", title_style="bold", header_style="bold", box=SIMPLE_HEAD)
    for column in columns:
        if column in numbers:
            made.add_column(column, justify="right", no_wrap=True)
        elif column == flexible:
            made.add_column(column, overflow="fold", ratio=1)
        else:
            made.add_column(column, overflow="fold")
    return made


def seconds(value: float) -> str:
    return f"{value:.2f} s"


def size(count: int) -> str:
    """Bytes for people, in powers of 1,000."""
    value = float(count)
    for unit in ("B", "kB", "MB"):
        if value < 1_000:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1_000
    return f"{value:.1f} GB"


def program() -> str:
    """How a shell runs this command again from here: ``toolsearch`` only where that is the program that runs now."""
    called = Path(sys.argv[0])
    if called.stem != "toolsearch":  # python -m toolsearch, or a program that calls us
        return f"{shlex.quote(sys.executable)} -m toolsearch"
    found = shutil.which("toolsearch")
    if found and Path(found).resolve() == called.resolve():
        return "toolsearch"
    return shlex.quote(_from_here(called))


def _from_here(path: Path) -> str:
    """*path* from the working directory, if it is in there: so it is shorter, and stays right while one stays."""
    try:
        return os.path.join(".", path.absolute().relative_to(Path.cwd()))  # noqa: PTH118  a Path drops the dot
    except ValueError:
        return str(path)
