"""Who changed what, by journals: nothing is missed, whoever dies and however slow a reader is."""

import pytest

from trilogue.broker.cluster.changes import ENTRIES_MAX, Account, Journal, read_journal


def journal(*commits):
    found = Journal()
    for number, paths in enumerate(commits):
        found = found.after(paths, attempt=number)
    return found


def test_a_journal_is_read_as_it_was_written():
    written = journal(["/a", "/b"], ["/c"])
    assert read_journal(written.to_json()) == written
    assert (written.number, written.attempt) == (2, 1)


def test_a_journal_forgets_old_commits_and_does_not_name_what_is_too_much():
    long = journal(*([f"/{number}"] for number in range(100)))
    assert (long.number, len(long.entries), long.entries[-1].paths) == (100, ENTRIES_MAX, ("/99",))
    large = journal(["/" + "x" * 5000], ["/" + "y" * 5000], ["/z" * 40_000])
    assert [(entry.number, entry.paths is None) for entry in large.entries] == [(2, False), (3, True)]


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b'{"number": 1, "attempt": 1, "last": [1]}', b"\xff"])
def test_what_is_no_journal_is_refused(data):
    with pytest.raises((ValueError, KeyError, TypeError)):
        read_journal(data)


def test_a_reader_hears_of_every_commit_once():
    account = Account(10, {"a": journal(["/old"])})
    assert account.hear(12, {"a": journal(["/old"], ["/1"], ["/2"])}) == {"/1", "/2"}
    assert account.hear(12, {"a": journal(["/old"], ["/1"], ["/2"])}) == set()
    assert account.hear(14, {"a": journal(["/old"], ["/1"], ["/2"], ["/3"]), "b": journal(["/b"])}) == {"/3", "/b"}


def test_journals_may_be_newer_than_the_version():
    account = Account(0, {})
    assert account.hear(1, {"a": journal(["/1"]), "b": journal(["/2"])}) == {"/1", "/2"}
    assert account.hear(2, {"a": journal(["/1"]), "b": journal(["/2"])}) == set()


def test_a_writer_that_died_unread_is_noticed():
    account = Account(0, {"a": journal()})
    assert account.hear(2, {"a": journal(["/1"])}) is None


def test_a_writer_that_died_unread_is_noticed_later_if_others_hide_it_first():
    account = Account(0, {})
    assert account.hear(1, {"a": journal(["/1"])}) == {"/1"}, "its commit was the first, and this is the second"
    assert account.hear(2, {"a": journal(["/1"])}) is None


def test_a_reader_that_was_too_slow_knows_it():
    account = Account(0, {"a": Journal()})
    assert account.hear(100, {"a": journal(*([f"/{number}"] for number in range(100)))}) is None


def test_a_store_that_has_gone_back_in_time_is_noticed():
    assert Account(10, {}).hear(3, {}) is None


def test_our_own_commits_need_no_reading():
    account = Account(5, {})
    assert account.hear_own(5, "", -1), "nothing is new"
    assert account.hear_own(6, "me", 1)
    assert not account.hear_own(8, "me", 2), "and something else besides"
    assert not account.hear_own(7, "other", -1)
    assert account.hear(8, {"me": journal(["/1"], ["/2"]), "other": journal(["/o"])}) == {"/2", "/o"}
