"""What is masked of a text: secrets and personal data, and nothing that only looks like them."""

import json
import sys

import pytest

from toolsearch.scanning.masking import is_secret_name, masked_text


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("mail ann@example.com.", "mail [e-mail]."),
        ("<ann.o'neil+x@mail.example.co.uk>", "<[e-mail]>"),
        ("müller@exämple.de, 邮箱ann@163.com。", "[e-mail], 邮箱[e-mail]。"),
        ("+49 30 1234567, +1 (415) 555-2671; +442071838750", "[phone number], [phone number]; [phone number]"),
        ("(415) 555-2671, 415-555-2671 or 415.555.2671", "[phone number], [phone number] or [phone number]"),
        ('tel. 030 / 1234567, "mobile": "0171 1234567"', 'tel. [phone number], "mobile": "[phone number]"'),
        ("phone_number=06 12 34 56 78", "phone_number=[phone number]"),
        ("DE89 3704 0044 0532 0130 00 AND GB82WEST12345698765432.", "[IBAN] AND [IBAN]."),
        ("4111 1111 1111 1111, 5500-0000-0000-0004, 378282246310005", "[card number], [card number], [card number]"),
        ("from 93.184.216.34:443 and http://93.184.216.35/x", "from [IP address]:443 and http://[IP address]/x"),
        ("2001:4860:4860::8888", "[IP address]"),
        ("password=hunter22 Password: 'correcthorse'", "password=*** Password: '***'"),
        ('{"api_key": "abcdef", "x": 1}', '{"api_key": "***", "x": 1}'),
        (r'"{\"client_secret\": \"abcdef\"}"', r'"{\"client_secret\": \"***\"}"'),
        ("DB_PASSWORD=correcthorse", "DB_PASSWORD=***"),
        ("Authorization: Bearer abcDEF1234567890abcd==", "Authorization: Bearer ***=="),
        ("postgres://user:pa55@host/db", "postgres://user:***@host/db"),
        ("postgres://user:pa55@db.example.com/x", "postgres://user:***@db.example.com/x"),
        (f"x ghp_{'a1' * 18} y", "x *** y"),
        ("AKIA" + "A1B2" * 4, "***"),
        ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc", "***"),
        ("SG." + "a1" * 11 + "." + "b2" * 20, "***"),
        ("a\n-----BEGIN RSA PRIVATE KEY-----\nMII\n-----END RSA PRIVATE KEY-----\nb", "a\n***\nb"),
        ("-----BEGIN PRIVATE KEY-----\nMII", "***"),
    ],
)
def test_a_secret_or_a_personal_datum_gets_a_label(text: str, masked: str) -> None:
    assert masked_text(text) == masked
    assert masked_text(masked) == masked


@pytest.mark.parametrize(
    "text",
    [
        "git@github.com:a/b.git lodash@4.17.21 icon@2x.png @types/node@20.1.0 a@1.2.3.final x@localhost @ann",
        "v1.2.3.4, version 1.2.3.4, ==1.2.3.4, Chrome/120.0.0.1, 1.3.6.1.4.1, 6.0.0.0, 999.1.1.1, 1.2.3.4-beta",
        "192.168.0.1 10.0.0.7 127.0.0.1 ::1 fe80::1 00:1a:2b:3c:4d:5e 2024:01:02:03:04 std::string",
        "2026-11-27T07:47:05.123456Z 2026-11-27 07:47:05 +00:00 +01:00 UTC+02:00 1764229625123456789",
        "4f1bc5df-7a1d-4b1e-9c1e-411111111111 41111111-1111-4111-8111-111111111111 4111111111111112",
        "0.4111111111111111 -4111111111111111 4111111111111111.5 id_4111111111111111 x4111111111111111",
        "4111-1111 1111 1111, 9999 9999 9999 9995, 10,000,000,000 +12345 1e+1000000000",
        "DE88 3704 0044 0532 0130 00, XX89 3704 0044 0532 0130 00, AB12CD34EF56AB12CD34EF56, SHA1DEADBEEF00112233",
        "password=user_password password: required, password=getpass.getpass() Password: 'string' secret: none",
        "the tokenizer, a key: value, keyboard=qwerty123, next_page_token=CAUQAA12345, token_count: 1234567",
        "basic authentication, the bearer of news, sk-loading-indicator-large, eyJpZCI6MTIzfQ eyJpZCI6MTIz.abcdef1",
        "http://host:8080/@scope/name, https://user@host/, excel: 12345678, hotel: 1234567",
        "+@pytest.mark.parametrize -@a.decorator '@octokit/auth-token': '^6.0.0'",
        "RFC 5890, section 2.3.2.3, sec 3.1.1.1 §2.5.5.2",
        "123-45-6789 415-55-2671 1-800-FLOWERS 415-555-26712 2415-555-2671",
        "commit a14e3f41ed7bd4d23db2e1dd8e6e1527b3712994 sha256:4f1bc5df4f1bc5df4f1bc5df4f1bc5df",
    ],
)
def test_what_only_looks_like_one_stays_and_so_does_the_object(text: str) -> None:
    assert masked_text(text) is text


@pytest.mark.parametrize(
    ("document", "masked"),
    [
        ({"a": "x\nann@example.org"}, {"a": "x\n[e-mail]"}),
        ({"a": "M\u00fcann@example.org"}, {"a": "M\u00fc[e-mail]"}),
        ({"card": 4111111111111111, "of": [4111111111111111]}, {"card": "[card number]", "of": ["[card number]"]}),
        ({"password": 'a"b'}, {"password": 'a"b'}),
    ],
)
@pytest.mark.parametrize("indent", [None, 2])
def test_a_text_of_json_stays_json(document: object, masked: object, indent: int | None) -> None:
    assert json.loads(masked_text(json.dumps(document, indent=indent))) == masked


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("an\u200bn@exa\u00admple.org", "[e-mail]"),
        ("ann\uff20example.org", "[e-mail]"),
        ("ghp_" + "a1B2c3D4e5\u2060" * 4, "***"),
        ("4111\u200b111111111111", "[card number]"),
    ],
)
def test_signs_that_a_reader_does_not_see_hide_nothing(text: str, masked: str) -> None:
    assert masked_text(text) == masked


def test_signs_that_hide_nothing_stay() -> None:
    text = "a\u200bb\uff20c"
    assert masked_text(text) is text


def test_what_looked_like_a_secret_and_is_none_hides_nothing_behind_it() -> None:
    assert masked_text("password:ann@example.org") == "password:[e-mail]"
    assert masked_text(f"secret:{'a' * 10_000}/ann@example.org") == f"secret:{'a' * 10_000}/[e-mail]"
    assert masked_text("tel: 4111 1111 1111 1111") == "tel: [card number]"


@pytest.mark.parametrize("odd", ["\ud800 ann@example.com", "\x00ann@example.com\x00", "é" * 100 + "@example.com"])
def test_odd_characters_do_no_harm(odd: str) -> None:
    assert "[e-mail]" in masked_text(odd)


@pytest.mark.parametrize(
    "unit",
    [
        *("a", "@", "+1 ", "4111 ", "1.2.3.4.", "a@b.c", "DE12 ", "://a:", "eyJaaaaaaaaaa-sk-" + "a1" * 16 + "-"),
        *("password=", "phone:", "-----BEGIN PRIVATE KEY-----", "SG.aaaaaaaaaa-", "(415) ", "2001:", "\xc3", "a.@"),
    ],
)
def test_the_work_grows_with_the_text_alone(unit: str) -> None:
    """Counted in lines of Python, since the expressions are RE2's, and in how far each of them reads."""

    def steps(times: int) -> int:
        count = 0

        def tracer(*_: object) -> object:
            nonlocal count
            count += 1
            return tracer

        text = unit * times
        before = sys.gettrace()
        sys.settrace(tracer)  # type: ignore[arg-type]
        try:
            masked_text(text)
        finally:
            sys.settrace(before)
        return count

    assert steps(400) < 2.2 * steps(200) + 200


def test_names_whose_values_are_secret_are_known_and_others_are_not() -> None:
    secret = [
        "password",
        "db_password",
        "userPassword",
        "apiKey",
        "x-api-key",
        "AWS_SECRET_ACCESS_KEY",
        "refresh_token",
    ]
    plain = ["key", "token", "author", "next_page_token", "password_hint_shown", "issue_key", "secretary", "keys"]
    assert [name for name in secret if not is_secret_name(name)] == []
    assert [name for name in plain if is_secret_name(name)] == []
