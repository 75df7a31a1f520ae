"""Replaces secrets and what is personal in texts: keys and passwords; e-mail and IP addresses; phone, card and account
numbers.

One pass of RE2, in linear time, finds what looks like one of these. Checks of its digits and its surroundings leave out
what only looks so: ids, versions, dates, measures.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from ipaddress import ip_address
from string import ascii_letters, digits
from typing import Any, Final, NamedTuple, TypeAlias

import re2 as untyped_re2  # type: ignore[import-untyped]  # pyright: ignore[reportMissingTypeStubs]

from toolsearch.scanning.texts import is_invisible

_re2: Any = untyped_re2

SECRET: Final = "***"  # noqa: S105
E_MAIL: Final = "[e-mail]"
PHONE: Final = "[phone number]"
ACCOUNT: Final = "[IBAN]"
CARD: Final = "[card number]"
ADDRESS: Final = "[IP address]"


class Mask(NamedTuple):
    """The bytes from *start* to *end* are replaced by *label*."""

    start: int
    end: int
    label: str


# Looks at the bytes from *start* to *end*, which an expression has found, and says what of them to replace.
_Check: TypeAlias = Callable[[bytes, int, int], Mask | None]


def masked_text(text: str) -> str:
    """*text* with a label for each secret and personal datum in it; the same object if there is none.

    It is read without invisible characters, and with the plain forms of wide ones. Where something is masked, they are
    gone. A number that is by itself a value of JSON gets quotes, so that the text stays JSON.
    """
    data = _read(text)
    parts: list[bytes] = []
    kept = at = 0
    while (match := _any.search(data, at)) is not None:
        number: int = match.lastindex
        check = _RULES[number - 1][1]
        start, end = match.span()
        mask = check(data, start, end)
        if mask is not None and mask.start >= kept:
            start = _behind_escape(data, mask.start)
            parts += (data[kept:start], _label(data, mask))
            kept = at = mask.end
        else:
            at = max(start + 1, end - _LOOKED_AT_AGAIN) if check in _TAKING_ANYTHING else end
    return b"".join((*parts, data[kept:])).decode("utf-8", "surrogatepass") if parts else text


def may_hold_some(texts: Sequence[str]) -> bool:
    """Whether anything in *texts* looks like what is masked. One look at all is many times faster than one at each."""
    return _any.search(_read("\0".join(texts))) is not None


def is_secret_name(name: str) -> bool:
    """Whether a value of this name is a secret, whatever it looks like."""
    return _secret_name.search(name.encode("utf-8", "replace")) is not None


_LOOKED_AT_AGAIN: Final = 256  # bytes at the end of a long match; with more, hostile texts would take long
_WIDE: Final = {chr(ord(sign) + 0xFEE0): sign for sign in f"{ascii_letters}{digits}@.-_+"}  # as East Asian texts write


def _read(text: str) -> bytes:
    if not text.isascii():
        signs = set(text)
        plain = {ord(sign): "" for sign in signs if is_invisible(sign)}
        plain |= {ord(sign): _WIDE[sign] for sign in signs & _WIDE.keys()}
        text = text.translate(plain) if plain else text
    return text.encode("utf-8", "surrogatepass")


_MOST_INDENT: Final = 64  # white space between a number and the signs of JSON around it


def _label(data: bytes, mask: Mask) -> bytes:
    is_number = data[mask.start : mask.end].isdigit()
    before = data[max(mask.start - _MOST_INDENT, 0) : mask.start].rstrip()
    after = data[mask.end : mask.end + _MOST_INDENT].lstrip()
    is_value = is_number and before[-1:] in (b":", b"[", b",") and after[:1] in (b",", b"]", b"}")
    return (f'"{mask.label}"' if is_value else mask.label).encode()


def _behind_escape(data: bytes, start: int) -> int:
    r"""Where the text begins that was found at *start*: in JSON, the ``n`` of ``\nann@example.org`` is not of it."""
    if data[start - 1 : start] != b"\\":
        return start
    return start + (5 if data[start : start + 1] == b"u" else 1)


_WORD: Final = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_")
_DIGITS: Final = frozenset(b"0123456789")
_LOCAL: Final = _WORD | frozenset(b".%+'-")  # the part of an e-mail address before its sign


def _begins_alone(data: bytes, start: int) -> bool:
    """Whether what begins at *start* is no part of a longer word, number, id or path."""
    return start == 0 or not (data[start - 1] in _WORD or data[start - 1] in b".-/@")


def _ends_alone(data: bytes, end: int, joining: bytes = b".-/:") -> bool:
    """Whether what ends before *end* is no part of a longer word; *joining* are signs that go on with one."""
    if end == len(data):
        return True
    goes_on = data[end] in joining and data[end + 1 : end + 2].isalnum()
    return data[end] not in _WORD and not goes_on


def _digits(data: bytes) -> str:
    return "".join(chr(byte) for byte in data if byte in _DIGITS)


def _is_mixed(word: bytes) -> bool:
    """Whether *word* has letters and digits, as keys have that a machine has made."""
    return any(byte in _DIGITS for byte in word) and any(chr(byte).isalpha() for byte in word)


def _key(data: bytes, start: int, end: int) -> Mask | None:
    return Mask(start, end, SECRET) if _is_mixed(data[start:end]) else None


def _key_in_parts(data: bytes, start: int, end: int) -> Mask | None:
    """A JWT, or a key of three parts; what only begins like one may be a cursor."""
    parts = data[start:end].split(b".")
    is_whole = len(parts) == 3 and (parts[0] == b"SG" or parts[1].startswith(b"eyJ"))
    return Mask(start, end, SECRET) if is_whole else None


def _private_key(data: bytes, start: int, end: int) -> Mask:
    """The whole key, up to its end or that of the text."""
    ending = data.find(b"-----END", end)
    closing = data.find(b"-----", ending + len(b"-----END")) if ending >= 0 else -1
    return Mask(start, closing + len(b"-----") if closing >= 0 else len(data), SECRET)


_NO_SECRETS: Final = frozenset(
    {
        *(b"string", b"text", b"password", b"boolean", b"required", b"optional", b"secret", b"hidden", b"number"),
        *(b"undefined", b"integer", b"object"),
    }
)


def _named_secret(data: bytes, start: int, end: int) -> Mask | None:
    """The value behind a telling name: anything in quotes or of a variable, else only what a machine has made."""
    value_start = start + _before_value.match(data[start:end]).end()
    name = data[start:value_start].rstrip(b"=")
    value = data[value_start:end]
    is_quoted = data[value_start - 1] in b"\"'" and data[end : end + 1] in (b'"', b"'", b"\\")
    is_variable = name.isupper() and data[value_start - 1 : value_start] == b"="
    is_told = (is_quoted or is_variable) and value.lower() not in _NO_SECRETS and value[0] not in b"^~"
    return Mask(value_start, end, SECRET) if is_told or _is_mixed(value) else None


def _bearer(data: bytes, start: int, end: int) -> Mask | None:
    value_start = data.index(b" ", start) + 1
    return Mask(value_start, end, SECRET) if _is_mixed(data[value_start:end]) else None


def _password_in_url(data: bytes, start: int, end: int) -> Mask:
    colon = data.index(b":", start + len(b"://"))
    return Mask(colon + 1, end - 1, SECRET)


_NO_DOMAINS: Final = frozenset(
    (b"png", b"jpg", b"jpeg", b"gif", b"svg", b"webp", b"js", b"mjs", b"cjs", b"ts", b"tsx", b"jsx", b"css", b"html",
     b"json", b"map", b"vue", b"yml", b"yaml", b"git", b"service", b"local", b"localhost", b"final", b"release")
)  # fmt: skip


def _e_mail(data: bytes, start: int, end: int) -> Mask | None:
    """The address whose sign and domain are found. Only its beginning is looked for here, so that a long run of letters
    is read once.
    """
    local = data[_begin_of_local(data, start) : start].lstrip(b".%+'-")
    labels = data[start + 1 : end].split(b".")
    ending = labels[-1].lower()
    is_version = len(labels) > 2 and labels[-2].isdigit()
    is_repository = local == b"git" and data[end : end + 1] in (b":", b"/")
    is_no_domain = not ending.isalpha() or len(ending) < 2 or ending in _NO_DOMAINS
    return None if not local or is_version or is_repository or is_no_domain else Mask(start - len(local), end, E_MAIL)


def _begin_of_local(data: bytes, sign: int) -> int:
    """Where the part of an e-mail address before its *sign* begins. Letters with an accent are two bytes."""
    at, first = sign, max(sign - _LONGEST_LOCAL, 0)
    while at > first:
        if data[at - 1] in _LOCAL:
            at -= 1
        elif at > 1 and 0x80 <= data[at - 1] < 0xC0 and 0xC3 <= data[at - 2] < 0xCA:
            at -= 2
        else:
            break
    return at


def _phone(data: bytes, start: int, end: int) -> Mask | None:
    """One with the code of its country. That of America and that of Russia have eleven digits."""
    digits = _digits(data[start:end])
    is_possible = len(digits) == 11 if digits[0] in "17" else 9 <= len(digits) <= 15
    is_alone = data[start - 1 : start] not in (b"+", b"-") and not data[start - 1 : start].isalnum()
    return Mask(start, end, PHONE) if is_possible and is_alone and _ends_alone(data, end) else None


def _phone_by_form(data: bytes, start: int, end: int) -> Mask | None:
    """``(415) 555-2671`` or the like, with one separator throughout."""
    separators = {byte for byte in data[start:end] if byte in b".-"}
    is_alone = _begins_alone(data, start) and _ends_alone(data, end)
    return Mask(start, end, PHONE) if is_alone and len(separators) == 1 else None


def _phone_by_name(data: bytes, start: int, end: int) -> Mask | None:
    number_start = start + _before_number.match(data[start:end]).end()
    is_possible = 7 <= len(_digits(data[number_start:end])) <= 15
    return Mask(number_start, end, PHONE) if is_possible and _ends_alone(data, end) else None


_ACCOUNT_LENGTHS: Final = {
    code: int(length)
    for length, codes in (
        ("15", "NO"), ("16", "BE BI"), ("18", "DK FI FO GL NL SD"), ("19", "MK SI"),
        ("20", "AT BA EE KZ LT LU XK MN"),
        ("21", "CH HR LI LV"), ("22", "BG BH CR DE GB GE IE ME RS VA"), ("23", "AE GI IL IQ OM TL"),
        ("24", "AD CZ ES MD PK RO SA SE SK TN VG DZ"), ("25", "LY PT ST AO CV MZ"), ("26", "IS TR"),
        ("27", "FR GR IT MC MR SM DJ"), ("28", "AL AZ BY CY DO GT HU LB NI PL SV"), ("29", "BR EG PS QA UA"),
        ("30", "JO KW MU"), ("31", "MT SC"), ("32", "LC"), ("33", "RU"),
    )
    for code in codes.split()
}  # fmt: skip


def _account(data: bytes, start: int, end: int) -> Mask | None:
    """An IBAN: as long as those of its country, and with fitting check digits."""
    places = [at for at in range(start, end) if data[at] in _WORD]
    length = _ACCOUNT_LENGTHS.get(data[start : start + 2].decode())
    if length is None or len(places) < length or not _begins_alone(data, start):
        return None
    plain = "".join(chr(data[at]) for at in places[:length])
    number = "".join(str(int(sign, 36)) for sign in plain[4:] + plain[:4])
    end = places[length - 1] + 1
    return Mask(start, end, ACCOUNT) if int(number) % 97 == 1 and _ends_alone(data, end) else None


_ISSUERS: Final = {  # length -> ranges of the first four digits
    16: ((4000, 4999), (5100, 5599), (2221, 2720), (6011, 6011), (6440, 6599), (3528, 3589), (6200, 6299)),
    15: ((3400, 3499), (3700, 3799)),
    14: ((3000, 3059), (3600, 3699), (3800, 3899)),
}


def _card(data: bytes, start: int, end: int) -> Mask | None:
    digits = _digits(data[start:end])
    separators = {byte for byte in data[start:end] if byte not in _DIGITS}
    is_issued = any(first <= int(digits[:4]) <= last for first, last in _ISSUERS.get(len(digits), ()))
    if len(separators) > 1 or not is_issued or not _fits_luhn(digits):
        return None
    return Mask(start, end, CARD) if _begins_alone(data, start) and _ends_alone(data, end) else None


def _fits_luhn(digits: str) -> bool:
    doubled = (sum(divmod(2 * int(digit), 10)) for digit in digits[-2::-2])
    return (sum(map(int, digits[-1::-2])) + sum(doubled)) % 10 == 0


def _ip_address(data: bytes, start: int, end: int) -> Mask | None:
    """A public address of a host. Those of private networks say nothing of a person."""
    try:
        address = ip_address(data[start:end].decode())
    except ValueError:
        return None
    is_alone = data[start - 3 : start] == b"://" or _begins_alone(data, start)
    if not address.is_global or not is_alone or not _ends_alone(data, end, b".-"):
        return None
    is_version = data[end - 2 : end] == b".0" or _says_version.search(data[max(start - _VERSION_BEFORE, 0) : start])
    return None if address.version == 4 and is_version else Mask(start, end, ADDRESS)


def _options() -> Any:
    options = _re2.Options()
    options.encoding = _re2.Options.Encoding.LATIN1  # bytes are read as they are, which is the fastest
    options.log_errors = False
    return options


def _compiled(expression: str) -> Any:
    return _re2.compile(expression.encode("latin-1"), _options())


_LONGEST_LOCAL: Final = 64  # bytes before the sign of an e-mail address
_VERSION_BEFORE: Final = 12  # characters before a number that may call it a version
_OPENING: Final = r"""\\?["']?[ ]?[:=]>?[ ]?\\?["']?"""  # between a name and its value
_BEFORE_NUMBER: Final = _OPENING.replace(":=", ":.=")
_TELLING_NAME: Final = (
    r"(?i:passw(?:or)?d|passphrase|secret(?:[_-]?(?:access)?[_-]?key)?|(?:api|access|private)[_-]?key"
    r"|(?:access|refresh|auth)[_-]?token)"
)
_PHONE_NAME: Final = r"(?:(?i:phone|mobile|fax)|\b(?i:tel|telefon|cell|mobil))(?i:[ _-]?(?:number|no|nr))?"
_LETTER: Final = r"(?:[A-Za-z0-9_-]|[\xc3-\xc9][\x80-\xbf])"  # also one with an accent, in UTF-8
_MARKED: Final = (  # keys by which their makers mark them
    r"\b(?:gh[opusr]_[A-Za-z0-9]{30,}|github_pat_[A-Za-z0-9_]{40,}|glpat-[\w-]{20,}|xox[a-z]-[A-Za-z0-9-]{10,}"
    r"|A[KS]IA[A-Z0-9]{16}|AIza[\w-]{35}|hf_[A-Za-z0-9]{30,}|npm_[A-Za-z0-9]{36}|pypi-[\w-]{40,}|ya29\.[\w-]{20,}"
    r"|dop_v1_[a-f0-9]{64}|shp[a-z]{2}_[a-fA-F0-9]{32}|whsec_[A-Za-z0-9+/]{24,}|sk-[A-Za-z0-9]{32,}"
    r"|[prs]k[_-](?:live|test|ant|proj|svcacct|or)[_-][\w-]{16,})"
)

# No expression may have to read far to find that it does not match: a text could be full of such beginnings. So none
# begins with a run of letters, and a long run within one is taken whatever follows.

_RULES: Final[tuple[tuple[str, _Check], ...]] = (
    (r"-----BEGIN [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----", _private_key),
    (_MARKED, _key),
    (r"\b(?:eyJ|SG\.)[\w-]{10,}(?:\.[\w-]+)*", _key_in_parts),
    (rf"""{_TELLING_NAME}{_OPENING}[^\s"'`,;<>(){{}}\\$&*]{{6,}}""", _named_secret),
    (r"\b(?i:bearer|basic) [A-Za-z0-9._~+/-]{16,}", _bearer),
    (r"""://[^\s/:@"'<>]+:[^\s/@"'<>]+@""", _password_in_url),
    (rf"{_PHONE_NAME}{_BEFORE_NUMBER}[0-9(][0-9 ()/.-]{{5,18}}[0-9]", _phone_by_name),
    (rf"@{_LETTER}+(?:\.{_LETTER}+)+", _e_mail),
    (r"\b[A-Z]{2}[0-9]{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?\b", _account),
    (r"(?:\([2-9][0-9]{2}\) ?|\b[2-9][0-9]{2}[.-])[2-9][0-9]{2}[.-][0-9]{4}\b", _phone_by_form),
    (r"\b[2-6][0-9]{3}[ -]?[0-9]{4}[ -]?[0-9]{4}[ -]?[0-9]{4}\b|\b3[0-9]{3}[ -]?[0-9]{6}[ -]?[0-9]{4,5}\b", _card),
    (r"\b[0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3}\b", _ip_address),
    (r"\b[23][0-9a-fA-F]{3}:[0-9a-fA-F:]{3,34}[0-9a-fA-F]\b", _ip_address),
    (r"\+[1-9][0-9 ().-]{6,20}[0-9]", _phone),
)
_TAKING_ANYTHING: Final = (_named_secret, _phone_by_name)  # their matches may hold the beginning of another one
_any: Final = _compiled("|".join(f"({expression})" for expression, _ in _RULES))
_secret_name: Final = _compiled(rf"{_TELLING_NAME}$")
_before_value: Final = _compiled(_TELLING_NAME + _OPENING)
_before_number: Final = _compiled(_PHONE_NAME + _BEFORE_NUMBER)
_says_version: Final = _compiled(
    r"""(?:\b(?i:v|ver|version|release|sec|section|chapter)\.?["']?[ :=]{0,3}["']?|[=~^\xa7] ?)$"""
)
