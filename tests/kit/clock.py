"""A clock that stands still until a test turns it."""


class Clock:
    """Gives *now_s* wherever a clock is a parameter; a test sets it, and nothing else does."""

    def __init__(self, now_s: float = 0.0) -> None:
        self.now_s = now_s

    def __call__(self) -> float:
        return self.now_s
