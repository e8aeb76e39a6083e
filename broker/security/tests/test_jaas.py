"""`sasl.jaas.config`, as people write it."""

import pytest

from trilogue.broker.security.jaas import JaasError, Login, parse

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"


def test_who_we_are_and_whom_we_know():
    login = parse(f'{PLAIN} required username="me" password="s3cret" user_me="s3cret" user_you="other";')

    assert login.module == PLAIN
    assert (login.options["username"], login.options["password"]) == ("me", "s3cret")
    assert login.users == {"me": "s3cret", "you": "other"}


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("m required;", {}),
        ("m Required a=b;", {"a": "b"}),
        ("m required a = 'b c' ;", {"a": "b c"}),
        ('m required\n  a="1;2=3"\n  // not this\n  b="" /* nor\n this */ ;\n', {"a": "1;2=3", "b": ""}),
        (r'm required a="x\"y\\z" b="\101\n";', {"a": 'x"y\\z', "b": "A\n"}),
        ('m required "user_a b"="c";', {"user_a b": "c"}),
    ],
)
def test_spaces_quotes_and_comments(text, options):
    assert parse(text) == Login("m", options)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "there is no login module in it"),
        ("  // nothing", "there is no login module in it"),
        ("m required a=b", "it does not end in a semicolon"),
        ("m required; n required;", "it names more than one login module"),
        (";", "what follows the login module is none of required, requisite, sufficient, optional"),
        ("m a=b;", "what follows the login module is none of required, requisite, sufficient, optional"),
        ("m required a=b secret;", 'option 2 has no value: write NAME="VALUE"'),
        ("m required a=;", 'option 1 has no value: write NAME="VALUE"'),
        ("m required a==b;", 'option 1 has no value: write NAME="VALUE"'),
        ('m required password="secret;', "a quote is not closed"),
    ],
)
def test_mistakes_are_told_without_what_may_be_secret(text, told):
    with pytest.raises(JaasError) as wrong:
        parse(text)
    assert str(wrong.value) == told
    assert "secret" not in told
