"""What a reader gets to see of transactions.  Nothing but bytes: no broker aborts on demand here."""

from trilogue.client.reader import Answer, judged
from trilogue.wire.records import Record, build, end_transaction_marker

ONE, OTHER = 1, 2


def data(offset, producer_id=-1):
    record = Record(offset, 1000, None, b"%d" % offset)
    identity = {"producer_id": producer_id, "producer_epoch": 0, "base_sequence": 0, "transactional": True}
    return bytes(build([record], base_offset=offset, **(identity if producer_id >= 0 else {})))


def marker(offset, producer_id, commit):
    return bytes(end_transaction_marker(commit, 0, producer_id, 0, 1000, base_offset=offset))


LOG = b"".join(
    [
        data(0, ONE),
        data(1, OTHER),
        data(2),
        marker(3, ONE, commit=False),
        marker(4, OTHER, commit=True),
        data(5, ONE),
        marker(6, ONE, commit=True),
    ]
)


def fetched(*aborted):
    return Answer(
        partition_index=0,
        high_watermark=7,
        records=LOG,
        aborted_transactions=[Answer.AbortedTransaction(producer_id=id_, first_offset=at) for id_, at in aborted],
    )


def seen(answer, committed_only):
    return [batch.header.base_offset for batch, shown in judged(answer, committed_only) if shown]


def test_records_of_an_aborted_transaction_are_left_out_and_those_of_the_next_are_not():
    assert seen(fetched((ONE, 0)), committed_only=True) == [1, 2, 5]


def test_who_reads_the_uncommitted_sees_all_but_the_markers():
    assert seen(fetched(), committed_only=False) == [0, 1, 2, 5]


def test_a_batch_that_is_not_shown_is_passed_all_the_same():
    assert [batch.header.base_offset for batch, _ in judged(fetched((ONE, 0)), True)] == [0, 1, 2, 3, 4, 5, 6]
