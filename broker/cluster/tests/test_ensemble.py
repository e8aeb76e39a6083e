"""Where ZooKeeper is, as people write it."""

import pytest

from trilogue.broker.cluster.ensemble import Ensemble, parse_connect


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("host:2181", ("host:2181", "")),
        ("host", ("host:2181", "")),
        ("a:1, b:2/kafka/one", ("a:1,b:2", "/kafka/one")),
        ("[::1]:2181/x/", ("[::1]:2181", "/x")),
        ("10.0.0.1:2181/", ("10.0.0.1:2181", "")),
    ],
)
def test_what_is_understood(text, found):
    assert parse_connect(text) == found


@pytest.mark.parametrize("text", ["", ":2181", "h:x", "h:65536", "a,,b", "h:1/a//b", "h:1/../b", "h:1/a b", "/x"])
def test_what_is_not(text):
    with pytest.raises(ValueError, match="write HOST:PORT"):
        parse_connect(text)


def test_it_is_named_without_its_password():
    assert str(Ensemble("h:2181", "/x", digest="user:secret")) == "ZooKeeper at h:2181/x"
