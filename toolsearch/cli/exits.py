"""What the exit codes mean, and which error has which."""

from __future__ import annotations

from enum import IntEnum

from toolsearch.errors import (
    EncoderError,
    IndexStoreError,
    MissingExtraError,
    ServerUnavailableError,
    SourceError,
    StorageError,
    ToolSearchError,
)


class ExitCode(IntEnum):
    OK = 0  # also for a search whose answer is weak: it says so
    NOTHING = 1  # nothing fits, no such tool, the called tool failed, a model left tools out; or stdout was closed
    USAGE = 2  # an option, a query, a rule or arguments that cannot be used
    UNREADABLE = 3  # a source, an index, a store, an encoder or a package that cannot be read or is not there
    BELOW = 4  # 'evaluate --min-recall': recall is below the given value
    INTERNAL = 70  # an error in toolsearch itself; the number is that of sysexits.h
    INTERRUPTED = 130  # Ctrl-C


_UNREADABLE = (SourceError, IndexStoreError, StorageError, EncoderError, MissingExtraError, ServerUnavailableError)
_BAD_INPUT_STATUSES = (400, 409, 422)


def exit_code_of(error: ToolSearchError) -> ExitCode:
    if isinstance(error, _UNREADABLE):
        return ExitCode.UNREADABLE
    return ExitCode.USAGE if error.status in _BAD_INPUT_STATUSES else ExitCode.NOTHING


HELP = (
    "Exit codes: 0 done, also with a weak answer · 1 nothing found, no such tool, or the called tool failed · 2 wrong "
    "usage or input · 3 a source, an index or an encoder cannot be read · 4 recall below --min-recall · 70 an error in "
    "toolsearch · 130 interrupted."
)
