"""SCRAM, held against the example of RFC 7677, and against everything that a stranger may say."""

from base64 import b64decode, b64encode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trilogue.broker.security.credentials import Credential
from trilogue.broker.security.principals import user
from trilogue.broker.security.sasl.mechanism import OTHER_NAME, SaslFailed
from trilogue.broker.security.sasl.scram import Known, Scram, client_first, pretended
from trilogue.client.sasl import NotBelieved, Password
from trilogue.wire.scram import First, ScramMechanism

NONCE = bytes(range(17))
SALT = b"a salt of sixteen"
KINDS = list(ScramMechanism)


def credential(kind, password="pencil"):
    return Credential.of_password(kind, password, SALT, 4096)


def server(kind, users, *, tokens=None):
    def find(first: First):
        found = (tokens or {}) if first.is_token else users
        return found.get(first.name)

    return Scram(kind, find, lambda name: pretended(kind, b"hidden", name), NONCE)


def client(kind, name="alice", password="pencil", **more):
    return Password(name, password, kind.sasl_name, **more).begin(b"client")


def log_in(who, scram):
    message = who.first()
    while not who.done:
        message = who.hear(scram.hear(message))
    assert message == b""


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["alice", "a,b=c", "CN=x, O=y"])
def test_both_sides_prove_that_they_know_the_password(kind, name):
    scram = server(kind, {name: Known(credential(kind), user(name), 5.0)})

    log_in(client(kind, name), scram)

    assert scram.principal == user(name)
    assert scram.expires_ms == 5.0


def test_the_example_of_the_rfc():
    kind = ScramMechanism.SCRAM_SHA_256
    made = Credential.of_password(kind, "pencil", b64decode("W22ZaJ0SNY7soEsUEjb6gQ=="), 4096)
    first = First("user", "rOprNGfwEbeRWgbNEkqO", "", {})
    scram = Scram(kind, lambda _: Known(made, user("user")), None, b"")
    scram._nonce = "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"

    told = scram.hear(f"n,,n={first.name},r={first.nonce}".encode())

    assert told == b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
    assert (
        scram.hear(
            b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
        )
        == b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="
    )


@pytest.mark.parametrize("kind", KINDS)
def test_a_wrong_password_and_an_unknown_user_fail_at_the_same_step(kind):
    for name in ("alice", "nobody"):
        scram = server(kind, {"alice": Known(credential(kind), user("alice"))})
        who = client(kind, name, "wrong")
        answer = who.hear(scram.hear(who.first()))
        with pytest.raises(SaslFailed) as failed:
            scram.hear(answer)
        assert str(failed.value) == ""
        assert scram.principal is None


def test_who_is_not_there_has_a_salt_like_anybody_else():
    kind = ScramMechanism.SCRAM_SHA_256
    first = [server(kind, {}).hear(b"n,,n=nobody,r=abc") for _ in range(2)]
    other = server(kind, {}).hear(b"n,,n=somebody,r=abc")

    assert first[0] == first[1] != other
    assert len(first[0]) == len(other)


def test_a_token_is_not_looked_for_among_the_users():
    kind = ScramMechanism.SCRAM_SHA_512
    users = {"id": Known(credential(kind, "user's"), user("id"))}
    tokens = {"id": Known(credential(kind, "token's"), user("owner"), 7.0)}

    scram = server(kind, users, tokens=tokens)
    log_in(client(kind, "id", "token's", is_token=True), scram)

    assert (scram.principal, scram.expires_ms) == (user("owner"), 7.0)


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"n,,n=,r=abc",
        b"n,,n=alice,r=",
        b"y,,n=alice,r=abc",
        b"p=tls-unique,,n=alice,r=abc",
        b"n,,n=al=ice,r=abc",
        b"n,,n=alice,r=a b",
        b"n,,n=alice,r=abc,1=x",
        "n,,n=älice,r=abc".encode(),
        b"\xff\xfe",
    ],
)
def test_what_is_no_beginning(message):
    with pytest.raises(SaslFailed):
        server(ScramMechanism.SCRAM_SHA_256, {}).hear(message)


def test_what_may_be_said_besides():
    first = client_first("n,a=al=2Cice,m=later,n=al=2Cice,r=abc,x=y,tokenauth=true")
    assert first == First("al,ice", "abc", "al,ice", {"x": "y", "tokenauth": "true"})


def test_nobody_acts_as_somebody_else():
    kind = ScramMechanism.SCRAM_SHA_256
    with pytest.raises(SaslFailed, match=OTHER_NAME):
        server(kind, {"alice": Known(credential(kind), user("alice"))}).hear(b"n,a=bob,n=alice,r=abc")


def test_too_few_rounds_are_no_protection():
    kind = ScramMechanism.SCRAM_SHA_256
    weak = Credential.of_password(kind, "pencil", SALT, 4095)
    with pytest.raises(SaslFailed):
        server(kind, {"alice": Known(weak, user("alice"))}).hear(b"n,,n=alice,r=abc")


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace("r=", "r=x"),
        lambda text: text[:-8],
        lambda text: text.partition(",p=")[0] + ",p=",
        lambda text: text.partition(",p=")[0] + ",p=" + b64encode(b"short").decode(),
        lambda text: "",
        lambda text: text.replace("c=", "d="),
    ],
)
def test_what_is_no_end(change):
    kind = ScramMechanism.SCRAM_SHA_256
    scram = server(kind, {"alice": Known(credential(kind), user("alice"))})
    who = client(kind)
    last = who.hear(scram.hear(who.first())).decode()

    with pytest.raises(SaslFailed):
        scram.hear(change(last).encode())
    assert scram.principal is None


def test_what_has_been_proven_is_not_proven_again():
    kind = ScramMechanism.SCRAM_SHA_256
    scram = server(kind, {"alice": Known(credential(kind), user("alice"))})
    who = client(kind)
    last = who.hear(scram.hear(who.first()))
    scram.hear(last)

    with pytest.raises(SaslFailed):
        scram.hear(last)


@given(st.lists(st.binary(max_size=80), max_size=4))
def test_strangers_are_never_let_in(messages):
    kind = ScramMechanism.SCRAM_SHA_256
    scram = server(kind, {"alice": Known(credential(kind), user("alice"))})
    for message in messages:
        try:
            scram.hear(message)
        except SaslFailed:
            break
    assert scram.principal is None


@pytest.mark.parametrize(
    "told",
    [
        b"r=other,s=QQ==,i=4096",
        b"r=636c69656e74,s=QQ==,i=4096",
        b"r=636c69656e74x,s=QQ==,i=1",
        b"r=636c69656e74x,s=QQ==,i=99999999",
        b"r=636c69656e74x,s=*,i=4096",
        b"",
    ],
)
def test_a_broker_that_makes_no_sense(told):
    who = client(ScramMechanism.SCRAM_SHA_256)
    who.first()
    with pytest.raises(NotBelieved, match="makes no sense"):
        who.hear(told)


def test_a_broker_that_does_not_know_the_password():
    kind = ScramMechanism.SCRAM_SHA_256
    scram = server(kind, {})
    who = client(kind)
    who.hear(scram.hear(who.first()))
    with pytest.raises(NotBelieved, match="does not know the password"):
        who.hear(b"v=" + b64encode(b"x" * 32))
    assert not who.done
