import pickle

import pytest

from trilogue.wire.errors import BrokerError, ErrorCode, MalformedMessage
from trilogue.wire.tests.records_oracle import Java, run


def test_there_is_a_code_for_every_number_from_minus_1_to_136():
    assert [code.value for code in ErrorCode] == list(range(-1, 137))


def test_a_code_is_its_number_and_knows_what_it_means():
    code = ErrorCode(3)

    assert code == 3
    assert code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert code.retriable
    assert code.sentence == "There is no such topic or partition on this broker."
    assert not ErrorCode.OFFSET_OUT_OF_RANGE.retriable


def test_every_code_has_one_sentence_of_its_own():
    sentences = [code.sentence for code in ErrorCode]

    assert len(set(sentences)) == len(sentences)
    assert [sentence for sentence in sentences if not sentence[0].isupper() or sentence[-1] != "."] == []


def test_a_broker_error_carries_its_code_and_says_why():
    refused = BrokerError(ErrorCode.INVALID_PARTITIONS, "0 partitions")

    assert (refused.code, refused.message, str(refused)) == (37, "0 partitions", "0 partitions")


def test_a_broker_error_without_words_is_called_by_its_code():
    refused = BrokerError(ErrorCode.INVALID_PARTITIONS)

    assert (refused.message, str(refused)) == (None, "INVALID_PARTITIONS")


def test_a_malformed_message_says_where_if_it_knows():
    assert str(MalformedMessage("9 left")) == "9 left"
    assert str(MalformedMessage("9 left", "topics[3].name")) == "topics[3].name: 9 left"


def test_a_malformed_message_survives_pickling():
    assert str(pickle.loads(pickle.dumps(MalformedMessage("9 left", "topics[3].name")))) == "topics[3].name: 9 left"


@pytest.mark.java
def test_numbers_names_and_retriability_are_kafkas(java: Java):
    kafkas = run(java, "clients-4.4.0", "RecordsErrors.java")

    ours = [f"{code.value} {code.name} {str(code.retriable).lower()}" for code in ErrorCode]
    assert sorted(ours) == sorted(kafkas)
