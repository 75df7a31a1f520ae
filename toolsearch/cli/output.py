"""The output of commands: text and tables for people or JSON for programs on stdout, everything else on stderr.

While a command runs, the packages' logs go to stderr: lines for people, or JSON for programs.
"""

from __future__ import annotations

import errno
import json
import logging
import os
import shlex
import shutil
import sys
import traceback
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, NoReturn, TextIO, TypeAlias

from toolsearch.request_ids import request_id_now

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

FORMAT: Final = 1  # the format of every printed record; it counts up unless keys are only added
_WIDTH: Final = 110  # columns without a terminal that knows its width
_quiet: ContextVar[bool] = ContextVar("quiet", default=False)
_DIFF_STYLES = {"+": "green", "-": "red", "@": "cyan"}


def stdout() -> Console:
    return _console(is_stderr=False)


def stderr() -> Console:
    return _console(is_stderr=True)


def _console(*, is_stderr: bool) -> Console:
    from rich.console import Console as RichConsole  # imported late, since some commands print no text

    class PipeAwareConsole(RichConsole):
        def on_broken_pipe(self) -> NoReturn:
            raise BrokenPipeError(errno.EPIPE, "nobody reads the output")  # Typer exits on it

    made = PipeAwareConsole(stderr=is_stderr, highlight=False, markup=False, emoji=False)
    if not made.is_terminal and "COLUMNS" not in os.environ:
        made.width = _WIDTH
    return made


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
    """Write the same JSON as `print_json` to a file."""
    to.write_text(json.dumps({"format": FORMAT, **record}, indent=2) + "\n", encoding="utf-8")


def put_record(
    record: Callable[[], Mapping[str, Any]], show: Callable[[], None], *, as_json: bool, to: Path | None
) -> None:
    """Print the record if *as_json*, or else *show* it to people. If there is a file *to*, write the record to
    it, too.
    """
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
    """Print a message that is neither a result nor a warning on stderr."""
    if not _quiet.get():
        from rich.text import Text

        stderr().print(Text(legible(message)), soft_wrap=True)


def stderr_is_watched() -> bool:
    """Whether a progress bar on stderr would be seen."""
    return sys.stderr.isatty() and not _quiet.get()


def warn(message: str) -> None:
    if _quiet.get():
        return
    sys.stderr.write(f"warning: {' '.join(legible(message).split())}\n")


def legible(text: str) -> str:
    """Replace control characters: the text of a tool or server must not control the terminal."""
    return "".join(c if c.isprintable() or c in "\n\t" else "\N{REPLACEMENT CHARACTER}" for c in text)


def print_diff(rows: Iterable[str]) -> None:
    """Print the lines of a unified diff of JSON. ASCII makes hidden characters visible."""
    from rich.text import Text

    for row in rows:
        stdout().print(Text(row, style=_DIFF_STYLES.get(row[:1], "")))


def line(text: str, style: str = "") -> Text:
    """Foreign text for a table: on one line, and never read as markup."""
    from rich.text import Text

    return Text(" ".join(legible(text).split()), style=style)


def table(title: str, columns: Sequence[str], *, numbers: Sequence[str] = (), flexible: str = "") -> Table:
    """A table of *columns*. Those of *numbers* are aligned right. In a narrow terminal, *flexible* is wrapped first."""
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


def with_skills(tools: int, skills: int) -> str:
    """The number of a server's tools, and of its skills if it has any."""
    return f"{tools:,}" if not skills else f"{tools:,} and {skills:,} skill{'s' if skills > 1 else ''}"


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
    if called.stem != "toolsearch":  # started as python -m toolsearch, or by another program
        return f"{shlex.quote(sys.executable)} -m toolsearch"
    found = shutil.which("toolsearch")
    if found and Path(found).resolve() == called.resolve():
        return "toolsearch"
    return shlex.quote(_from_here(called))


def _from_here(path: Path) -> str:
    """*path* from the working directory, if it is in there: so it is shorter, and stays right while one stays."""
    try:
        # A Path would drop the leading dot.
        return os.path.join(".", path.absolute().relative_to(Path.cwd()))  # noqa: PTH118
    except ValueError:
        return str(path)


LogLevel: TypeAlias = Literal["debug", "info", "warning", "error"]
LogFormat: TypeAlias = Literal["text", "json"]
_PACKAGES = ("toolsearch", "toolsearch_indexes")


# The pool of this package logs each attempt to connect, with names; `storage.postgres` logs the important events.
_DATABASE: Final = "psycopg"
_SERVER: Final = "uvicorn.error"  # only its warnings are shown


# The commands themselves report refused tools and failed calls, in more detail.
_TOLD_BY_THE_COMMANDS = ("toolsearch.catalog.catalog", "toolsearch.calling.tool_runner")


class _Line(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        request_id = request_id_now()
        return f"{record.levelname.lower()}: {legible(record.getMessage())}{request_id and f' [{request_id}]'}"


class _Json(logging.Formatter):
    """Formats each record as one line with a JSON object. Fields from ``extra={"fields": {...}}`` keep their names.

    An exception is logged by its kind and place only, since its message may contain a caller's data.
    """

    def format(self, record: logging.LogRecord) -> str:
        told: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **({"request_id": request_id} if (request_id := request_id_now()) else {}),
            **getattr(record, "fields", {}),
        }
        if record.exc_info and record.exc_info[0] is not None:
            kind, _, trace = record.exc_info
            told["error"] = kind.__name__
            told["at"] = [f"{each.filename}:{each.lineno} {each.name}" for each in traceback.extract_tb(trace)]
        return json.dumps(told, default=str)


_FORMATS: Final[dict[LogFormat, type[logging.Formatter]]] = {"text": _Line, "json": _Json}


class _Handler(logging.StreamHandler[TextIO]):
    """Our own handler class, which distinguishes it from handlers of a program that calls the command line."""


@contextmanager
def logs_on_stderr() -> Generator[None]:
    handler = _Handler(sys.stderr)
    handler.setFormatter(_Line())
    handler.addFilter(lambda record: record.name not in _TOLD_BY_THE_COMMANDS)
    before = {logger: logger.level for logger in map(logging.getLogger, (*_PACKAGES, _SERVER))}
    for logger in before:
        logger.addHandler(handler)
    database, nowhere = logging.getLogger(_DATABASE), logging.NullHandler()
    database.addHandler(nowhere)
    try:
        yield
    finally:
        database.removeHandler(nowhere)
        for logger, level in before.items():
            logger.removeHandler(handler)
            logger.setLevel(level)


def log_from(level: LogLevel, form: LogFormat = "text") -> None:
    """Show the packages' logs from *level* on, in that form, until `logs_on_stderr` ends."""
    for name in _PACKAGES:
        logger = logging.getLogger(name)
        logger.setLevel(level.upper())
        for handler in logger.handlers:
            if isinstance(handler, _Handler):
                handler.setFormatter(_FORMATS[form]())
