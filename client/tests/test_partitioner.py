"""Keys go where Kafka's other clients put them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.partitioner.default import murmur2 as kafka_murmur2

from trilogue.client.partitioner import murmur2, partition_of


@given(st.binary(max_size=40))
def test_as_kafka_python(key):
    assert murmur2(key) == kafka_murmur2(key) & 0xFFFFFFFF


@pytest.mark.parametrize(
    ("key", "hashed"),
    [(b"21", -973932308), (b"foobar", -790332482), (b"a-little-bit-long-string", -985981536), (b"abc", 479470107)],
)
def test_as_the_java_client(key, hashed):
    """The numbers are from the test of org.apache.kafka.common.utils.Utils."""
    assert murmur2(key) == hashed & 0xFFFFFFFF


def test_a_partition_is_never_negative():
    assert partition_of(b"21", 10) == (-973932308 & 0x7FFFFFFF) % 10
