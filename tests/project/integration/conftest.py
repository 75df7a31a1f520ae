"""The process whose copies run examples."""

from tests.kit.examples import copied_example

__all__ = ["copied_example"]
