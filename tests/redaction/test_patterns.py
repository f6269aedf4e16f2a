"""What the built-in patterns find, held against lists of true and false cases."""

from __future__ import annotations

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibrate.redaction.patterns import PATTERNS, find_cards

EMAILS = [
    ("Write to a.b+c@ex-ample.co.uk.", "a.b+c@ex-ample.co.uk"),
    ("<mailto:jürgen@müller.de>", "jürgen@müller.de"),
    ("From 'q@x.io' on", "q@x.io"),
    ("O'Brien: o'brien@mail.example.org, urgent", "o'brien@mail.example.org"),
    ("user_1@sub.domain.museum\n", "user_1@sub.domain.museum"),
    ("A@B.COM", "A@B.COM"),
]
NO_EMAILS = ["a@b", "npm i pkg@1.2.3", "@user said", "5 @ 3.50 each", "user@localhost", "a@.com", "cat@@dog.com", ""]

# The card numbers are those that the card networks publish for tests.
CARDS = [
    ("Visa 4111 1111 1111 1111, thanks", "4111 1111 1111 1111"),
    ("4111-1111-1111-1111.", "4111-1111-1111-1111"),
    ("4012888888881881", "4012888888881881"),
    ("MC 5555555555554444", "5555555555554444"),
    ("2223003122003222", "2223003122003222"),
    ("Amex 3782 822463 10005", "3782 822463 10005"),
    ("378282246310005", "378282246310005"),
    ("6011000990139424 5", "6011000990139424"),
    ("Diners 3056 930902 5904", "3056 930902 5904"),
    ("4222222222222", "4222222222222"),
]
NO_CARDS = [
    "4111 1111 1111 1112",  # a wrong check digit
    "order 1234567890123456",
    "0000 0000 0000 0000",
    "1700000000000 ms",
    "3.4111111111111111",
    "id-4111111111111111-a",
    "4111 1111 11111111",  # no grouping of any card
    "978-3-16-148410-0",
]

PHONES = [
    ("Call +49 30 1234567 now", "+49 30 1234567"),
    ("+14155552671", "+14155552671"),
    ("+1 (415) 555-2671", "+1 (415) 555-2671"),
    ("+44 (0)20 7946 0958.", "+44 (0)20 7946 0958"),
    ("0049 30 1234567", "0049 30 1234567"),
    ("(415) 555-2671", "(415) 555-2671"),
    ("415-555-2671", "415-555-2671"),
    ("tel. 415.555.2671.", "415.555.2671"),
    ("1-415-555-2671", "1-415-555-2671"),
    ("030 1234567", "030 1234567"),
    ("0171/1234567", "0171/1234567"),
    ("020 7946 0958", "020 7946 0958"),
    ("07700 900123", "07700 900123"),
    ("01 23 45 67 89", "01 23 45 67 89"),
    ("Freephone 0800 123 4567, free", "0800 123 4567"),
]
NO_PHONES = [
    "2024-01-31",
    "01-02-2024",
    "01-02-2024 10:30",
    "01-02-2024 10",
    "05/12/2024 11",
    "192.168.1.100",
    "1,234,567.89",
    "978-3-16-148410-0",
    "0-306-40615-2",
    "2019-2020",
    "order 1234567890",
    "0012345678901",
    "+10 000 000 users",
    "+5000000",
    "0.0123 456789",
    "10:30 12345",
    "pages 555-1234",
    "v1.2.3",
    "4111 1111 1111 1111",
    "ISSN 0317-8471",
]

A40 = "aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC1dE3fG5hJ7k"
WEB_TOKEN = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dozjgNryP4J3jVmN"
KEYS = [
    (f"sk-{A40}", f"sk-{A40}"),
    (f"use ghp_{A40[:36]}, then", f"ghp_{A40[:36]}"),
    ("AKIAIOSFODNN7EXAMPLE", "AKIAIOSFODNN7EXAMPLE"),
    (f"AIza{A40[:35]}", f"AIza{A40[:35]}"),
    ("xoxb-123456789012-abcdefghij", "xoxb-123456789012-abcdefghij"),
    (f"hf_{A40}", f"hf_{A40}"),
    ("api_key = 'abc123def456ghi789'", "abc123def456ghi789"),
    ('"password": "hunter2hunter2hunter2"', "hunter2hunter2hunter2"),
    ("Authorization: Bearer abcdefghijk1234567890", "abcdefghijk1234567890"),
    (f"jwt {WEB_TOKEN}", WEB_TOKEN),
    (
        "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----\nend",
        "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----",
    ),
]  # fmt: skip
NO_KEYS = [
    f"task-{A40}",
    "token: short",
    "the secret: responsibility",
    "tokens: 12345678901234567890",
    "a bearer of extraordinarily_good_news",
    "sk-short",
    "risk-free-and-more-than-twenty-letters",
    "-----BEGIN CERTIFICATE-----",
]

TRUE = [
    (kind, text, value)
    for kind, cases in {"email": EMAILS, "card": CARDS, "phone": PHONES, "key": KEYS}.items()
    for text, value in cases
]
FALSE = [
    (kind, text)
    for kind, cases in {"email": NO_EMAILS, "card": NO_CARDS, "phone": NO_PHONES, "key": NO_KEYS}.items()
    for text in cases
]


@pytest.mark.parametrize(("kind", "text", "value"), TRUE)
def test_a_true_case_is_found_whole(kind, text, value):
    spans = list(PATTERNS[kind](text))
    start, end = min(a for a, _ in spans), max(b for _, b in spans)
    assert text[start:end] == value


@pytest.mark.parametrize(("kind", "text"), FALSE)
def test_a_false_case_is_left(kind, text):
    assert list(PATTERNS[kind](text)) == []


@given(st.integers(10**14, 10**15 - 1))
def test_one_check_digit_of_ten_makes_a_card(middle):
    numbers = [f"4{middle}{check}" for check in string.digits]
    assert sum(bool(list(find_cards(number))) for number in numbers) == 1
