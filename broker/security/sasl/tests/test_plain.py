"""PLAIN, in Kafka's order of complaints."""

import pytest

from trilogue.broker.security.principals import user
from trilogue.broker.security.sasl.mechanism import OTHER_NAME, SaslFailed, in_words
from trilogue.broker.security.sasl.plain import Plain

USERS = {"alice": "secret", "ümit": "pässword", "empty": ""}


@pytest.mark.parametrize("message", ["\0alice\0secret", "alice\0alice\0secret", "\0ümit\0pässword"])
def test_who_knows_the_password_is_let_in(message):
    plain = Plain(USERS)

    assert plain.hear(message.encode()) == b""
    assert plain.principal == user(message.split("\0")[1])
    assert plain.expires_ms is None


@pytest.mark.parametrize(
    ("message", "told"),
    [
        (b"", "Invalid SASL/PLAIN response: expected 3 tokens, got 1"),
        (b"alice\0secret", "Invalid SASL/PLAIN response: expected 3 tokens, got 2"),
        (b"\0alice\0secret\0", "Invalid SASL/PLAIN response: expected 3 tokens, got 4"),
        (b"\0\0secret", "Authentication failed: username not specified"),
        (b"\0\0", "Authentication failed: username not specified"),
        (b"\0alice\0", "Authentication failed: password not specified"),
        (b"\0alice\0wrong", "Authentication failed: Invalid username or password"),
        (b"\0alice\0secret ", "Authentication failed: Invalid username or password"),
        (b"\0Alice\0secret", "Authentication failed: Invalid username or password"),
        (b"bob\0alice\0wrong", "Authentication failed: Invalid username or password"),
        (b"bob\0alice\0secret", OTHER_NAME),
        (b"\0empty\0\xff", "Authentication failed: Invalid username or password"),
    ],
)
def test_everybody_else_hears_why_not(message, told):
    plain = Plain(USERS)

    with pytest.raises(SaslFailed) as failed:
        plain.hear(message)
    assert str(failed.value) == told
    assert plain.principal is None


def test_nobody_is_let_in_with_no_password():
    plain = Plain({"empty": ""})
    with pytest.raises(SaslFailed, match="password not specified"):
        plain.hear(b"\0empty\0")


def test_who_has_nothing_to_say_leaves_it_to_kafkas_words():
    assert in_words(SaslFailed("why"), "PLAIN", again=False) == "why"
    assert in_words(SaslFailed(), "SCRAM-SHA-256", again=False) == (
        "Authentication failed during authentication due to invalid credentials with SASL mechanism SCRAM-SHA-256"
    )
    assert "during re-authentication due" in in_words(SaslFailed(), "SCRAM-SHA-256", again=True)
