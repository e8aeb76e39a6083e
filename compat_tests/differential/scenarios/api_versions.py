"""ApiVersions: what is said about features and names; the ranges themselves are compared in test_differential."""

from typing import Any

from compat_tests.differential.asking import Asking, scenario
from compat_tests.differential.connection import Closed, Connection
from compat_tests.differential.plain import plain
from trilogue.wire.apis.api_versions import ApiVersionsRequest


def without_keys(told: dict[str, Any]) -> dict[str, Any]:
    return told | {"api_keys": "some" if told["api_keys"] else "none"}


@scenario(ApiVersionsRequest)
def software(ask: Asking) -> None:
    for case, name, version in (
        ("a plain name", "differential", "1.0"),
        ("one letter", "d", "1"),
        ("dots and dashes inside", "d-i.f", "1.0-rc.1"),
        ("no name", "", "1.0"),
        ("no version", "differential", ""),
        ("a dash first", "-differential", "1.0"),
        ("a dash last", "differential-", "1.0"),
        ("a dot as version", "differential", "."),
        ("a space", "differ ential", "1.0"),
        ("an underscore", "differ_ential", "1.0"),
        ("letters of other alphabets", "différentiel", "1.0"),
        ("a line feed at the end", "differential\n", "1.0"),
    ):
        ask(case, ApiVersionsRequest(client_software_name=name, client_software_version=version), tidy=without_keys)
    fine = ApiVersionsRequest(client_software_name="differential", client_software_version="1")
    ask("no client id", fine, client_id=None, tidy=without_keys)
    ask("an empty client id", fine, client_id="", tidy=without_keys)
    ask("bytes behind the request", fine, trailing=b"more than was asked for", tidy=without_keys)


@scenario(ApiVersionsRequest)
def unheard_of(ask: Asking) -> None:
    """Versions and keys that nobody has; asked the same for every version that somebody has."""
    for case, version, body in (
        ("version 99", 99, b"\0"),
        ("version 32767 and a body", 32767, b"\0\x05abcd\x021\0"),
        ("version -1", -1, b""),
    ):
        connection = Connection(ask.address)
        connection.send_raw(18, version, body)
        try:
            ask.note(case, plain(connection.hear(ApiVersionsRequest(), 0), 0, {}, "-"))
        except Closed:
            ask.note(case, "closed")
        connection.close()
    for case, key, version in (
        ("key 9999", 9999, 0),
        ("key -1", -1, 0),
        ("Produce v99", 0, 99),
        ("Metadata v99", 3, 99),
        ("LeaderAndIsr v0", 4, 0),
        ("Vote v0, which is for controllers", 52, 0),
    ):
        connection = Connection(ask.address)
        connection.send_raw(key, version, bytes(64))
        ask.note(case, "closed" if connection.hangs_up() else "answered")
        connection.close()
