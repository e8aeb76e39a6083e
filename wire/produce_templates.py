"""What a producer says again and again, understood once.

A producer's next request mostly differs from one before in its correlation id and its records, and in nothing else.
Whoever says the same bytes means the same by them: so a request is remembered by what stands between the two, and comes
back with the new records in it.  Its answer is remembered as well, as bytes in which four numbers change.

Only a request that stands there as we would have written it ourselves is remembered.  Then the size of its records is
the last thing before them, and the last thing behind them are three empty sets of tagged fields.  Whatever is not so
is read in the long way.

Measured, small requests of one record: 11.5 -> 7.2 us of Python each, 1.3 times as many with 50 connections of one in
flight, 1.46 times with five in flight.
"""

import struct

import msgspec

from trilogue.wire.apis.produce import ProduceRequest, ProduceResponse
from trilogue.wire.errors import MalformedMessage
from trilogue.wire.frame import SIZE, Header, write_request, write_response
from trilogue.wire.runtime import put_uvarint, uvarint

TEMPLATES_MAX = 64
"""So many requests of a connection are remembered: one for each partition it writes to, as a rule."""

LENGTHS_MAX = 4
"""So many lengths of what is remembered.  Each costs a look."""

FIRST = struct.Struct(">hhi")  # key, version, correlation id
NUMBERS = struct.Struct(">qqq")  # base offset, time of the append, start of the log
CORRELATION = struct.Struct(">i")
TAIL = bytes(3)
"""No tagged fields: of the partition, of the topic, of the request."""

MARK = -0x0123456789ABCDEF, -0x1032547698BADCFE, -0x77665544332211EE
"""Numbers that are in no answer, to see where those of an answer are."""


class ProduceTemplate:
    """One request for one partition, and how it is answered if all goes well."""

    __slots__ = ("_answer", "_numbers_at", "client_id", "data", "request", "topic", "version")

    def __init__(self, header: Header, request: ProduceRequest) -> None:
        self.version, self.client_id = header.version, header.client_id
        topic = request.topic_data[0]
        self.data = data = msgspec.structs.replace(topic.partition_data[0], records=None)
        """Where the records go."""
        self.topic = msgspec.structs.replace(topic, partition_data=[data])
        self.request = msgspec.structs.replace(request, topic_data=[self.topic])
        base, time, start = MARK
        done = ProduceResponse.Topic.Partition(
            index=data.index, base_offset=base, log_append_time_ms=time, log_start_offset=start
        )
        answered = ProduceResponse.Topic(name=topic.name, topic_id=topic.topic_id, partition_responses=[done])
        self._answer = b"".join(write_response(ProduceResponse(responses=[answered]), header.version, 0))
        self._numbers_at = self._answer.index(NUMBERS.pack(*MARK))

    def answer(
        self, correlation_id: int, base_offset: int, log_append_time_ms: int, log_start_offset: int
    ) -> bytearray:
        """The frame of the answer."""
        out = bytearray(self._answer)
        CORRELATION.pack_into(out, SIZE.size, correlation_id)
        NUMBERS.pack_into(out, self._numbers_at, base_offset, log_append_time_ms, log_start_offset)
        return out


class ProduceTemplates:
    """Those of one connection."""

    __slots__ = ("_known", "_lengths", "_room")

    def __init__(self) -> None:
        self._known: dict[bytes, ProduceTemplate] = {}
        self._lengths: list[int] = []
        """Where the sizes of records stood so far."""
        self._room = TEMPLATES_MAX

    def recall(self, frame: memoryview) -> tuple[ProduceTemplate, int] | None:
        """What this frame says, if it was said before with other records; and its correlation id."""
        for at in self._lengths:
            template = self._known.get(bytes(frame[FIRST.size : at]))
            if template is not None:
                break
        else:
            return None
        try:
            key, version, correlation_id = FIRST.unpack_from(frame)
            size, at = uvarint(frame, at)
        except (IndexError, MalformedMessage):
            return None
        end = at + size - 1
        if key != ProduceRequest.api_key or version != template.version or end <= at or frame[end:] != TAIL:
            return None
        template.data.records = frame[at:end]
        return template, correlation_id

    def learn(self, frame: memoryview, header: Header, request: ProduceRequest) -> None:
        """Remember a request that was read from this frame, if it is of the kind that comes again."""
        if not self._room or header.version not in request.flexible or len(request.topic_data) != 1:
            return
        partitions = request.topic_data[0].partition_data
        if len(partitions) != 1 or not partitions[0].records or request.transactional_id is not None:
            return
        records = partitions[0].records
        self._room -= 1  # also for what is looked at in vain
        ours = b"".join(write_request(request, header.version, header.correlation_id, header.client_id))
        if ours[SIZE.size :] != frame:
            return
        size = bytearray()
        put_uvarint(len(records) + 1, size)
        at = len(frame) - len(TAIL) - len(records) - len(size)
        if at not in self._lengths:
            if len(self._lengths) == LENGTHS_MAX:
                return
            self._lengths.append(at)
        self._known[bytes(frame[FIRST.size : at])] = ProduceTemplate(header, request)
