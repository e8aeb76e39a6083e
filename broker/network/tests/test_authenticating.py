"""Listeners with SASL: who is let in, what everybody else hears, and when.

The answers are those of Apache Kafka 4.3.1, read off its sources; real clients are in compat_tests/test_security.py.
"""

import struct
import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from trilogue.broker.config import BrokerConfig, ConfigError
from trilogue.broker.network.listeners import CannotStart, close_listeners, open_listeners
from trilogue.broker.security.principals import user
from trilogue.broker.server import inter_broker_listener
from trilogue.broker.tests.running import Raw, running
from trilogue.client.blocking import Blocking, run
from trilogue.client.link import connect
from trilogue.client.sasl import MECHANISMS, NotBelieved, Password
from trilogue.client.world import Address
from trilogue.wire.apis.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
)
from trilogue.wire.apis.api_versions import ApiVersionsRequest, ApiVersionsResponse
from trilogue.wire.apis.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
)
from trilogue.wire.apis.metadata import MetadataRequest, MetadataResponse
from trilogue.wire.apis.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from trilogue.wire.apis.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from trilogue.wire.errors import ErrorCode
from trilogue.wire.frame import write_request
from trilogue.wire.scram import ScramMechanism

MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
JAAS = "listener.name.in.plain.sasl.jaas.config"
SETTINGS = {
    "listeners": "IN://127.0.0.1:0",
    "listener.security.protocol.map": "IN:SASL_PLAINTEXT,OUT:PLAINTEXT",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
    JAAS: f'{MODULE} required user_alice="secret" user_bob="other";',
}
RIGHT, WRONG, BOBS = b"\0alice\0secret", b"\0alice\0wrong", b"\0bob\0other"
HELLO = ApiVersionsRequest(client_software_name="test", client_software_version="1")
METADATA = MetadataRequest(topics=[])
DELAY_SECONDS = 0.1


@pytest.fixture(scope="module", params=["auto", "tasks"])
def broker(request):
    with running(**SETTINGS, **{"trilogue.transport": request.param}) as server:
        yield server


@pytest.fixture
def raw(broker):
    with Raw(broker) as one:
        yield one


def shake(raw, mechanism="PLAIN", version=1):
    return raw.ask(SaslHandshakeRequest(mechanism=mechanism), version, SaslHandshakeResponse)


def say(raw, message, version=2):
    return raw.ask(SaslAuthenticateRequest(auth_bytes=message), version, SaslAuthenticateResponse)


def log_in(raw, message=RIGHT):
    shake(raw)
    return say(raw, message)


def is_known(raw):
    return raw.ask(METADATA, 9, MetadataResponse).cluster_id is not None


def hung_up(raw, *requests):
    for request, version in requests:
        raw.send(b"".join(write_request(request, version, 1, "raw")))
    return raw.receive() == b""


# -- who is let in ---------------------------------------------------------------------------------


def test_who_knows_his_password(raw, broker):
    assert raw.ask(HELLO, 3, ApiVersionsResponse).error_code == ErrorCode.NONE
    assert shake(raw) == SaslHandshakeResponse(mechanisms=["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
    answer = say(raw, RIGHT)

    assert (answer.error_code, bytes(answer.auth_bytes), answer.session_lifetime_ms) == (ErrorCode.NONE, b"", 0)
    assert is_known(raw)
    (guest,) = [each for each in guests(broker) if each.connection.peer.principal == user("alice")]
    assert guest.connection.peer.login.principal == user("alice")


def guests(broker):
    return list(broker.transport._guests.by_fd.values())


def test_the_oldest_clients_say_it_without_headers(raw):
    shake(raw, version=0)
    raw.send(struct.pack(">i", len(RIGHT)) + RIGHT)
    assert raw.sock.recv(4, 0x100) == b"\0\0\0\0"
    assert is_known(raw)


@pytest.mark.parametrize("kind", ScramMechanism)
def test_scram_with_credentials_that_are_kept_in_the_store(raw, broker, kind):
    name = f"scram {kind.name}"
    log_in(raw)
    give(raw, name, kind)
    link = dialled(broker, Password(name, "pencil", kind.sasl_name))
    assert run(link.call(METADATA, MetadataResponse)).cluster_id
    link.close()
    with pytest.raises(NotBelieved, match="invalid credentials with SASL mechanism SCRAM"):
        dialled(broker, Password(name, "pen", kind.sasl_name))
    deletion = AlterUserScramCredentialsRequest.Deletion(name=name, mechanism=kind)
    raw.ask(AlterUserScramCredentialsRequest(deletions=[deletion], upsertions=[]), 0, AlterUserScramCredentialsResponse)
    with pytest.raises(NotBelieved):
        dialled(broker, Password(name, "pencil", kind.sasl_name))


def give(raw, name, kind=ScramMechanism.SCRAM_SHA_256):
    salted = kind.salted("pencil", b"salt", 4096)
    upsertion = AlterUserScramCredentialsRequest.Upsertion(
        name=name, mechanism=kind, iterations=4096, salt=b"salt", salted_password=salted
    )
    request = AlterUserScramCredentialsRequest(deletions=[], upsertions=[upsertion])
    assert raw.ask(request, 0, AlterUserScramCredentialsResponse).results[0].error_code == ErrorCode.NONE


def dialled(broker, who):
    return run(connect(Blocking(), Address("127.0.0.1", broker.listeners[0].port), who=who))


def test_our_own_client_says_why_it_is_not_believed(broker):
    for who, told in (
        (Password("alice", "wrong", "PLAIN"), "Authentication failed: Invalid username or password"),
        (Password("nobody", "x", "SCRAM-SHA-256"), "Authentication failed during authentication due to invalid"),
        (Password("alice", "secret", "GSSAPI"), "offers PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, not GSSAPI"),
    ):
        with pytest.raises(NotBelieved, match=told):
            dialled(broker, who)
    assert set(MECHANISMS) == {"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"}


# -- who is not ------------------------------------------------------------------------------------


def test_a_refusal_is_held_back_and_then_ends_it(raw):
    shake(raw)
    begun = time.monotonic()
    answer = say(raw, WRONG)

    assert time.monotonic() - begun >= DELAY_SECONDS * 0.9
    assert answer == SaslAuthenticateResponse(
        error_code=ErrorCode.SASL_AUTHENTICATION_FAILED,
        error_message="Authentication failed: Invalid username or password",
        auth_bytes=b"",
    )
    assert raw.receive() == b""


def test_what_comes_behind_a_refusal_is_not_looked_at(raw):
    shake(raw)
    for request, version in ((SaslAuthenticateRequest(auth_bytes=WRONG), 2), (METADATA, 9)):
        raw.send(b"".join(write_request(request, version, 7, "raw")))
    assert raw.receive() != b""
    assert raw.receive() == b""


def test_a_refusal_without_headers_is_silence(raw):
    shake(raw, version=0)
    raw.send(struct.pack(">i", len(WRONG)) + WRONG)
    assert raw.receive() == b""


def test_a_mechanism_that_there_is_not(raw):
    answer = shake(raw, "GSSAPI")
    assert answer.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM
    assert answer.mechanisms == ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]
    assert raw.receive() == b""


@pytest.mark.parametrize(
    "requests",
    [
        [(METADATA, 9)],
        [(SaslAuthenticateRequest(auth_bytes=RIGHT), 2)],
        [(HELLO, 3), (HELLO, 3)],
        [(HELLO, 3), (METADATA, 9)],
        [(SaslHandshakeRequest(mechanism="PLAIN"), 1), (METADATA, 9)],
        [(SaslHandshakeRequest(mechanism="PLAIN"), 1), (SaslHandshakeRequest(mechanism="PLAIN"), 1)],
    ],
    ids=lambda requests: " ".join(type(each).__name__.removesuffix("Request") for each, _ in requests),
)
def test_what_comes_at_the_wrong_time(raw, requests):
    for request, version in requests[:-1]:
        raw.send(b"".join(write_request(request, version, 1, "raw")))
        assert raw.receive() != b""
    assert hung_up(raw, requests[-1])


def test_who_asks_for_versions_wrongly_may_ask_again(raw):
    broken = ApiVersionsRequest(client_software_name="-", client_software_version="1")
    assert raw.ask(broken, 3, ApiVersionsResponse).error_code == ErrorCode.INVALID_REQUEST
    raw.send(struct.pack(">ihhih", 10, 18, 99, 5, -1))
    assert raw.receive()[4:6] == struct.pack(">h", ErrorCode.UNSUPPORTED_VERSION)
    assert raw.ask(HELLO, 3, ApiVersionsResponse).error_code == ErrorCode.NONE
    assert log_in(raw).error_code == ErrorCode.NONE


def test_before_it_is_known_who_it_is_nobody_says_much(raw):
    shake(raw)
    raw.send(struct.pack(">i", 524_289))
    assert raw.receive() == b""


def test_who_is_known_hears_that_it_is_too_late(raw):
    log_in(raw)
    assert shake(raw).error_code == ErrorCode.ILLEGAL_SASL_STATE
    again = say(raw, RIGHT)
    assert again.error_code == ErrorCode.ILLEGAL_SASL_STATE
    assert again.error_message == "SaslAuthenticate request received after successful authentication"
    assert is_known(raw)


MESSAGES = st.one_of(
    st.sampled_from([RIGHT[:-1], WRONG, b"", b"n,,n=alice,r=x", b"c=biws,r=x,p=QQ=="]), st.binary(max_size=40)
)
STEPS = st.one_of(
    st.tuples(st.just("hello"), st.integers(0, 4)),
    st.tuples(st.sampled_from(["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "X", "TRILOGUE-BROKER"]), st.integers(0, 1)),
    st.tuples(MESSAGES, st.integers(0, 2)),
    st.tuples(st.just("metadata"), st.integers(0, 12)),
    st.tuples(st.just("raw"), MESSAGES),
)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(STEPS, max_size=6))
def test_no_other_way_leads_in(broker, caplog, steps):
    with Raw(broker) as raw:
        try:
            for what, how in steps:
                raw.send(step(what, how))
            raw.send(b"".join(write_request(METADATA, 9, 99, "raw")))
        except OSError:
            return  # hung up on
        while frame := raw.receive():
            assert frame[:4] != struct.pack(">i", 99), "it was answered"
    assert "a bug of ours" not in caplog.text


def step(what, how):
    if what == "raw":
        return struct.pack(">i", len(how)) + how
    if what == "hello":
        request = HELLO
    elif what == "metadata":
        request = METADATA if how >= 1 else MetadataRequest(topics=[])
    elif isinstance(what, bytes):
        request = SaslAuthenticateRequest(auth_bytes=what)
    else:
        request = SaslHandshakeRequest(mechanism=what)
    return b"".join(write_request(request, how, 5, "raw"))


def test_what_strangers_call_things_does_not_fill_the_log(broker, raw, caplog):
    shake(raw, "x" * 30_000)
    assert raw.receive() == b""
    assert "not authenticated: there is no mechanism xxx" in caplog.text
    assert len(caplog.text) < 2000


def test_a_credential_that_cannot_be_read_lets_nobody_in_and_harms_nobody(caplog):
    with running(**SETTINGS) as server, Raw(server) as raw:
        log_in(raw)
        give(raw, "broken")
        give(raw, "whole")
        config = server.broker.image.configs
        object.__setattr__(
            server.broker.image, "configs", {**config, ("users", "broken"): {"SCRAM-SHA-256": "salt=nonsense"}}
        )
        with pytest.raises(NotBelieved):
            dialled(server, Password("broken", "pencil", "SCRAM-SHA-256"))
        dialled(server, Password("whole", "pencil", "SCRAM-SHA-256")).close()
        asked = DescribeUserScramCredentialsRequest(users=None)
        told = raw.ask(asked, 0, DescribeUserScramCredentialsResponse)

        assert [each.user for each in told.results] == ["whole"]
        assert "SCRAM-SHA-256 of 'broken' in the store: not a credential" in caplog.text
        assert "a bug of ours" not in caplog.text


# -- logins that end -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def strict():
    with running(**SETTINGS, **{"connections.max.reauth.ms": "60000"}) as server:
        yield server


def ahead(broker, seconds):
    """So much later."""
    broker.broker.clock.advance(seconds)


def test_a_login_that_has_ended_is_noticed_when_something_is_asked(strict):
    with Raw(strict) as raw:
        assert log_in(raw).session_lifetime_ms == 60_000
        ahead(strict, 59)
        assert is_known(raw)
        ahead(strict, 2)
        assert hung_up(raw, (METADATA, 9))


def test_a_login_is_made_again(strict):
    with Raw(strict) as raw:
        log_in(raw)
        assert shake(raw).error_code == ErrorCode.NONE, "at once, the first time"
        assert say(raw, RIGHT).session_lifetime_ms == 60_000
        assert shake(raw).error_code == ErrorCode.ILLEGAL_SASL_STATE, "not within a second"
        ahead(strict, 50)
        assert log_in(raw).session_lifetime_ms == 60_000
        ahead(strict, 50)
        assert is_known(raw)


def test_nobody_becomes_somebody_else(strict):
    with Raw(strict) as raw:
        log_in(raw)
        ahead(strict, 2)
        answer = log_in(raw, BOBS)
        assert answer.error_message == ("Cannot change principals during re-authentication from User.alice: User.bob")
        assert raw.receive() == b""


def test_nobody_is_known_again_by_another_mechanism(strict):
    with Raw(strict) as raw:
        log_in(raw)
        ahead(strict, 2)
        assert shake(raw, "SCRAM-SHA-256").error_code == ErrorCode.NONE
        assert hung_up(raw, (SaslAuthenticateRequest(auth_bytes=b"n,,n=alice,r=x"), 2))


def test_nothing_is_asked_between(strict):
    with Raw(strict) as raw:
        log_in(raw)
        ahead(strict, 2)
        shake(raw)
        assert hung_up(raw, (METADATA, 9))


# -- settings --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({JAAS: None}, f"{JAAS} is not set: nobody could log in by PLAIN"),
        ({JAAS: "x"}, f"{JAAS}: it does not end in a semicolon"),
        ({JAAS: "x.ScramLoginModule required;"}, f"{JAAS}: PLAIN needs PlainLoginModule, not x.ScramLoginModule"),
        (
            {"sasl.enabled.mechanisms": "GSSAPI"},
            "listener IN is to offer GSSAPI (sasl.enabled.mechanisms), and we speak "
            "PLAIN, SCRAM-SHA-256, SCRAM-SHA-512",
        ),
        (
            {"listener.name.in.sasl.enabled.mechanisms": ""},
            "listener IN asks who clients are, and sasl.enabled.mechanisms is empty",
        ),
        (
            {"listeners": "OUT://127.0.0.1:0"},
            "sasl.enabled.mechanisms is set, and no such listener asks who clients are: let it speak SASL_PLAINTEXT",
        ),
        (
            {"listener.name.typo.sasl.enabled.mechanisms": "PLAIN"},
            "listener.name.typo.sasl.enabled.mechanisms is set, "
            "and no such listener asks who clients are: let it speak SASL_PLAINTEXT",
        ),
    ],
)
def test_settings_that_cannot_be(changed, told):
    given = {name: value for name, value in {**SETTINGS, **changed}.items() if value is not None}
    with pytest.raises((CannotStart, ConfigError)) as refused:
        close_listeners(open_listeners(BrokerConfig.parse(given)))
    assert str(refused.value) == told


BOTH = {**SETTINGS, "listeners": "IN://127.0.0.1:0,OUT://127.0.0.1:0"}


def among_brokers(changed):
    config = BrokerConfig.parse({**BOTH, **changed})
    opened = open_listeners(config)
    close_listeners(opened)
    return inter_broker_listener(config, opened)


@pytest.mark.parametrize(
    ("changed", "listener"),
    [
        ({"security.inter.broker.protocol": "PLAINTEXT"}, "OUT"),
        ({"security.inter.broker.protocol": "SASL_PLAINTEXT"}, "IN"),
        ({"inter.broker.listener.name": "out"}, "OUT"),
        ({}, "IN"),
    ],
)
def test_which_listener_other_brokers_come_to(changed, listener):
    assert among_brokers(changed) == listener


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"security.inter.broker.protocol": "SSL"}, "security.inter.broker.protocol=SSL: no listener speaks it"),
        ({"inter.broker.listener.name": "other"}, "inter.broker.listener.name=other: listeners does not have it"),
        (
            {"inter.broker.listener.name": "OUT", "security.inter.broker.protocol": "PLAINTEXT"},
            "only one of inter.broker.listener.name and security.inter.broker.protocol should be set",
        ),
    ],
)
def test_listeners_that_other_brokers_cannot_come_to(changed, told):
    with pytest.raises(CannotStart) as refused:
        among_brokers(changed)
    assert str(refused.value) == told


def test_two_listeners_ask_each_in_its_own_way():
    given = {
        **SETTINGS,
        "listeners": "IN://127.0.0.1:0,OUT://127.0.0.1:0",
        "listener.name.in.sasl.enabled.mechanisms": "SCRAM-SHA-512",
    }
    with running(**given) as server:
        with Raw(server) as raw:
            assert shake(raw, "PLAIN").mechanisms == ["SCRAM-SHA-512"]
        link = run(connect(Blocking(), Address("127.0.0.1", server.listeners[1].port)))
        assert run(link.call(METADATA, MetadataResponse)).cluster_id
        link.close()
