"""The way from a stranger to somebody, and every other way, which ends."""

from hypothesis import given
from hypothesis import strategies as st

from trilogue.broker.security.principals import ANONYMOUS, user
from trilogue.broker.security.sasl.login import Heard, Login, Offered, Step
from trilogue.broker.security.sasl.mechanism import SaslFailed
from trilogue.broker.security.sasl.plain import Plain
from trilogue.wire.errors import ErrorCode

USERS = {"alice": "secret", "bob": "other"}
RIGHT, BOBS, WRONG = b"\0alice\0secret", b"\0bob\0other", b"\0alice\0wrong"


class Twice:
    """Wants two messages, of which the second says when the login ends."""

    name = "TWICE"

    def __init__(self):
        self.principal, self.expires_ms, self._first = None, None, True

    def hear(self, message):
        if self._first:
            self._first = False
            return b"go on"
        if not message.isdigit():
            raise SaslFailed
        self.principal, self.expires_ms = user("alice"), float(message)
        return b"welcome"


def login(lifetime_ms=None):
    ends = {} if lifetime_ms is None else dict.fromkeys(("PLAIN", "TWICE"), float(lifetime_ms))
    return Login(
        Offered({"PLAIN": lambda: Plain(USERS), "TWICE": Twice}, {"HIDDEN": Twice}, ends, 0.1),
    )


def plain(known, message=RIGHT, now=0.0):
    known.shake_hands("PLAIN", 1, now)
    return known.hear(message, now)


def test_a_stranger_becomes_somebody():
    one = login()
    one.asked_versions()
    assert one.shake_hands("PLAIN", 1, 0) == (ErrorCode.NONE, ["PLAIN", "TWICE"])
    assert not one.known(0)
    assert one.hear(RIGHT, 0) == Heard()
    assert one.known(0)
    assert (one.principal, one.ends_ms) == (user("alice"), None)


def test_the_old_handshake_has_messages_without_headers():
    one = login()
    one.shake_hands("PLAIN", 0, 0)
    assert one.step is Step.RAW
    one.hear(RIGHT, 0)
    assert one.known(0)


def test_a_mechanism_may_want_more():
    one = login()
    one.shake_hands("TWICE", 1, 0)
    assert one.hear(b"", 0) == Heard(auth_bytes=b"go on")
    assert one.hear(b"5000", 1000.0) == Heard(auth_bytes=b"welcome", lifetime_ms=4000)
    assert one.known(4999.0)
    assert not one.known(5000.0)
    assert one.step is Step.OVER


def test_a_mechanism_that_is_not_told_of():
    one = login()
    assert one.shake_hands("HIDDEN", 1, 0) == (ErrorCode.NONE, ["PLAIN", "TWICE"])


def test_a_mechanism_that_there_is_not():
    one = login()
    assert one.shake_hands("plain", 1, 0) == (ErrorCode.UNSUPPORTED_SASL_MECHANISM, ["PLAIN", "TWICE"])
    assert one.step is Step.OVER


def test_what_has_failed_is_over():
    one = login()
    heard = plain(one, WRONG)

    assert heard == Heard(ErrorCode.SASL_AUTHENTICATION_FAILED, "Authentication failed: Invalid username or password")
    assert one.step is Step.OVER
    assert one.principal == ANONYMOUS


def test_a_login_is_good_for_a_while_and_can_be_made_again():
    one = login(lifetime_ms=10_000)
    assert plain(one).lifetime_ms == 10_000
    assert one.may_begin_again(1)

    assert plain(one, now=8000.0).lifetime_ms == 10_000
    assert one.ends_ms == 18_000
    assert not one.may_begin_again(8999.0)
    assert one.may_begin_again(9000.0)


def test_without_an_end_it_is_not_made_again():
    one = login()
    plain(one)
    assert not one.may_begin_again(5000.0)


def test_nobody_becomes_somebody_else():
    one = login(lifetime_ms=10_000)
    plain(one)
    heard = plain(one, BOBS, 2000.0)

    assert heard.message == "Cannot change principals during re-authentication from User.alice: User.bob"
    assert one.step is Step.OVER
    assert one.principal == user("alice")


def test_nobody_is_known_again_by_something_else():
    one = login(lifetime_ms=10_000)
    plain(one)
    assert one.shake_hands("TWICE", 1, 2000.0)[0] == ErrorCode.NONE
    assert one.awaited == ()


def test_failing_again_is_told_so():
    one = login(lifetime_ms=10_000)
    one.shake_hands("TWICE", 1, 0)
    one.hear(b"", 0)
    one.hear(b"5000", 0)
    one.shake_hands("TWICE", 1, 2000.0)
    one.hear(b"", 2000.0)
    assert one.hear(b"x", 2000.0).message == (
        "Authentication failed during re-authentication due to invalid credentials with SASL mechanism TWICE"
    )


@given(st.lists(st.tuples(st.sampled_from(["PLAIN", "TWICE", "X"]), st.binary(max_size=30)), max_size=6))
def test_strangers_never_become_somebody(said):
    one = login()
    for mechanism, message in said:
        if one.step in (Step.START, Step.VERSIONS):
            one.shake_hands(mechanism, 1, 0)
        elif one.step is Step.TOKENS and not message.isdigit():
            one.hear(message, 0)
        assert one.principal == ANONYMOUS
        assert not one.known(0)
