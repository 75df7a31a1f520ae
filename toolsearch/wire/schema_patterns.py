"""Which regular expressions every reader of a schema can read, JavaScript's and Python's among them.

Whoever checks a schema by its draft may check its patterns as well, in a dialect of its own, and OpenAI takes none that
looks around (anomalyco/opencode#32073). None is run here.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, Final

_MOST_CHARACTERS: Final = 2_000
_MAX_MEMORY_BYTES: Final = 1 << 20
_CODE: Final = re.compile(r"\\u([0-9a-fA-F]{4})")
_OF_SOME: Final = re.compile(  # \p{L}, \z, \Q...\E, (?i), (?P<name>...), (?<name>...), [[:alpha:]], possessive a++
    r"\\[pPzZAQECXRGKhHNu]|\(\?[^:]|\[\[:|[+*?}]\+"
)


@lru_cache(maxsize=4_096)
def is_common_pattern(pattern: str) -> bool:
    if len(pattern) > _MOST_CHARACTERS:
        return False
    plain = _CODE.sub(r"\\x{\1}", pattern.replace(r"\\", "--"))
    if _OF_SOME.search(plain):
        return False
    import re2 as untyped_re2  # type: ignore[import-untyped]  # pyright: ignore[reportMissingTypeStubs]

    re2: Any = untyped_re2
    options = re2.Options()
    options.log_errors = False
    options.max_mem = _MAX_MEMORY_BYTES
    try:
        re2.compile(plain, options)
    except (re2.error, ValueError):
        return False
    return True
