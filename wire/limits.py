"""What no message may exceed, whatever it declares.  Kafka 4.4 has the same limits."""

ELEMENTS_MAX = 1_000_000
"""Elements of one array.  More would make a small frame into a large heap."""

TAGGED_FIELDS_MAX = 10_000
"""Tagged fields of one struct, known or not."""

STRING_BYTES_MAX = 32_767
"""A plain string counts in a signed 16-bit integer; Kafka holds compact ones to the same."""

VARINT_BYTES_MAX = 5
"""What an unsigned 32-bit number needs.  A longer one would be read for as long as it goes on."""
