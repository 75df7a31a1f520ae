"""What commands tell people: which lines there are about which things, however they are worded."""


def has_line(text: str, *parts: str) -> bool:
    """Whether one line of *text* has all *parts*."""
    return any(all(part in line for part in parts) for line in text.splitlines())
