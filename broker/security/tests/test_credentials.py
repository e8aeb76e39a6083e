"""What is kept of passwords, held against the example of RFC 7677."""

from base64 import b64decode

import pytest

from trilogue.broker.security.credentials import Credential, entity, entity_name
from trilogue.broker.security.principals import ANONYMOUS, Principal, user
from trilogue.wire.scram import ScramMechanism

SALT = b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")


def test_a_credential_is_what_the_rfc_makes_of_its_password():
    made = Credential.of_password(ScramMechanism.SCRAM_SHA_256, "pencil", SALT, 4096)

    assert made.text == (
        "salt=W22ZaJ0SNY7soEsUEjb6gQ==,"
        "stored_key=WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY=,"
        "server_key=wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU=,"
        "iterations=4096"
    )
    assert Credential.parse(made.text) == made


def test_a_credential_does_not_show_its_keys():
    assert repr(Credential(SALT, b"stored", b"server", 4096)) == "Credential(iterations=4096)"


@pytest.mark.parametrize("text", ["", "salt=QQ==", "salt=*,stored_key=,server_key=,iterations=x"])
def test_what_is_no_credential_is_refused(text):
    with pytest.raises(ValueError, match="not a credential"):
        Credential.parse(text)


def test_mechanisms_have_the_names_that_sasl_has():
    assert [each.sasl_name for each in ScramMechanism] == ["SCRAM-SHA-256", "SCRAM-SHA-512"]


@pytest.mark.parametrize("name", ["alice", "a/b", "..", ".", "<default>", "CN=x,O=y", "ä b", "%2F"])
def test_any_name_is_one_part_of_a_path(name):
    part = entity(name)

    assert "/" not in part
    assert part.strip(".")
    assert entity_name(part) == name


def test_principals():
    assert Principal.parse("User:CN=a:b") == Principal("User", "CN=a:b")
    assert str(user("alice")) == "User:alice"
    assert Principal.parse("User:ANONYMOUS") == ANONYMOUS
    for text in ("alice", ":alice", "User:"):
        with pytest.raises(ValueError, match="is not a principal"):
            Principal.parse(text)
