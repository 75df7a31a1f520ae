"""The public names of a package, each loaded when it is first used, so that importing the package costs little.

The file ``__init__.pyi`` of the package is the one list of them, a line for each: ``from MODULE import NAME as NAME``.
Type checkers read it as it is.
"""

from __future__ import annotations

TYPE_CHECKING = False  # as type checkers know it; importing typing takes ten times as long as this module

if TYPE_CHECKING:
    from collections.abc import Callable


def lazy_names(package: str, file: str) -> tuple[Callable[[str], object], Callable[[], list[str]], list[str]]:
    """Return ``__getattr__``, ``__dir__`` and ``__all__`` for *package*, whose ``__init__.py`` is *file*."""
    with open(f"{file}i", encoding="utf-8") as stub:  # noqa: PTH123  importing pathlib would take longer than all of this
        imports = [line.split() for line in stub if line.startswith("from ")]
    modules = {name: module for _, module, _, name, *_ in imports}

    def load(name: str) -> object:
        import sys
        from importlib import import_module

        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(modules[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    def listed() -> list[str]:
        import sys

        return sorted({*vars(sys.modules[package]), *modules})

    return load, listed, sorted(modules)
