"""AlterUserScramCredentials and DescribeUserScramCredentials: who can log in by SCRAM."""

from typing import Any

from compat_tests.differential.asking import Asking, scenario
from trilogue.wire.apis.alter_user_scram_credentials import AlterUserScramCredentialsRequest as Alter
from trilogue.wire.apis.describe_user_scram_credentials import DescribeUserScramCredentialsRequest as Describe

SHA_256, SHA_512 = 1, 2
SALT, SALTED = b"a salt", b"0123456789abcdef0123456789abcdef"


def upsertion(name: str, mechanism: int = SHA_256, iterations: int = 4096, salted: bytes = SALTED) -> Alter.Upsertion:
    return Alter.Upsertion(name=name, mechanism=mechanism, iterations=iterations, salt=SALT, salted_password=salted)


def deletion(name: str, mechanism: int = SHA_256) -> Alter.Deletion:
    return Alter.Deletion(name=name, mechanism=mechanism)


def in_order(told: dict[str, Any]) -> dict[str, Any]:
    """Kafka's comes out of hash maps; and what other scenarios have left is left out."""
    ours = ("alice", "bob", "carol", "nobody", "", "BOB", "a/b=c, ä", "..")
    found = [each for each in told["results"] if each["user"] in ours]
    for each in found:
        each.get("credential_infos", []).sort(key=repr)
    return told | {"results": sorted(found, key=repr)}


@scenario(Alter)
def altering(ask: Asking) -> None:
    alice, bob, carol = (ask.name(each) for each in ("alice", "bob", "carol"))

    def alter(case: str, *changes: Alter.Upsertion | Alter.Deletion) -> None:
        upserted = [each for each in changes if isinstance(each, Alter.Upsertion)]
        deleted = [each for each in changes if isinstance(each, Alter.Deletion)]
        ask(case, Alter(deletions=deleted, upsertions=upserted), tidy=in_order)
        ask.catch_up()
        told = ask.quietly(Describe(users=[Describe.User(name=name) for name in (alice, bob, carol)]), 0)
        ask.note(
            f"{case}: what there is then",
            [sorted([info.mechanism, info.iterations] for info in of.credential_infos) for of in ordered(told)],
        )

    alter("nothing")
    alter("two users", upsertion(alice), upsertion(bob, SHA_512, 16384))
    alter("a second mechanism", upsertion(alice, SHA_512, 5000))
    alter("other iterations", upsertion(alice, SHA_256, 8192))
    alter("both mechanisms at once", upsertion(carol), upsertion(carol, SHA_512))
    alter("deleted and set at once", deletion(alice), upsertion(alice, SHA_512))
    alter("deleted twice", deletion(alice), deletion(alice))
    alter("deleted by both mechanisms at once", deletion(alice), deletion(alice, SHA_512))
    alter("one good and one bad", upsertion(carol), upsertion("", SHA_256), deletion(ask.name("nobody")))
    for case, change in (
        ("too few iterations", upsertion(carol, iterations=4095)),
        ("too many iterations", upsertion(carol, iterations=16385)),
        ("no mechanism", upsertion(carol, 0)),
        ("a mechanism that there is not", upsertion(carol, 3)),
        ("no mechanism to delete", deletion(carol, 0)),
        ("a mechanism that he has not", deletion(carol, SHA_512)),
        ("nobody deleted", deletion("")),
        ("an empty password", upsertion(carol, salted=b"")),
    ):
        alter(case, change)
    alter("too few, and then good", upsertion(carol, iterations=1), upsertion(carol))
    alter("one mechanism gone", deletion(alice))
    alter("all gone", deletion(alice, SHA_512), deletion(bob, SHA_512), deletion(carol))


def ordered(told: Any) -> list[Any]:
    return sorted(told.results, key=lambda each: each.user)


@scenario(Describe)
def describing(ask: Asking) -> None:
    alice, bob = ask.name("alice"), ask.name("bob")
    set_up = Alter(deletions=[], upsertions=[upsertion(alice), upsertion(bob, SHA_512, 16384)])
    assert all(each.error_code == 0 for each in ask.quietly(set_up, 0).results)
    more = Alter(deletions=[], upsertions=[upsertion(alice, SHA_512, 5000)])
    assert all(each.error_code == 0 for each in ask.quietly(more, 0).results)
    ask.catch_up()

    def describe(case: str, *names: str) -> None:
        ask(case, Describe(users=[Describe.User(name=name) for name in names]), tidy=in_order)

    ask("everybody", Describe(users=None), tidy=in_order)
    describe("everybody, by naming nobody")
    describe("two users", alice, bob)
    describe("one that is not there", ask.name("nobody"), alice)
    describe("one twice", alice, bob, alice)
    describe("one twice who is not there", ask.name("nobody"), ask.name("nobody"))
    describe("no name", "")
    describe("no name twice", "", "")
    describe("all at once", "", bob, ask.name("nobody"), alice, alice)
    describe("in capital letters", bob.upper())
    strange = ask.name("a/b=c, ä")
    odd = Alter(deletions=[], upsertions=[upsertion(strange), upsertion(ask.name(".."))])
    assert all(each.error_code == 0 for each in ask.quietly(odd, 0).results)
    ask.catch_up()
    describe("strange names", strange, ask.name(".."))
    gone = Alter(deletions=[deletion(alice), deletion(bob, SHA_512)], upsertions=[])
    assert all(each.error_code == 0 for each in ask.quietly(gone, 0).results)
    ask.catch_up()
    describe("after one of two, and the only one, are gone", alice, bob)
