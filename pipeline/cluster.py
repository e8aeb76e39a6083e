"""What the brokers say about topics, asked through Kafka's own admin client in Spark's JVM.

So whatever security the source has been given holds here too.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from trilogue.pipeline.errors import PipelineError
from trilogue.pipeline.model import Source
from trilogue.pipeline.source import bootstrap, connection

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ANSWER_MS = "10000"

Offsets = dict[str, dict[int, int]]


class Cluster:
    def __init__(self, session: "SparkSession", source: Source) -> None:
        jvm: Any = session._jvm
        self._jvm = jvm
        self._source = source
        properties = self._jvm.java.util.Properties()
        for name, value in connection(source).items():
            properties.setProperty(name.removeprefix("kafka."), value)
        properties.setProperty("default.api.timeout.ms", ANSWER_MS)
        properties.setProperty("request.timeout.ms", ANSWER_MS)
        self._admin = self._jvm.org.apache.kafka.clients.admin.Admin.create(properties)

    def close(self) -> None:
        self._admin.close()

    def _ask(self, future: Any) -> Any:
        from py4j.protocol import Py4JJavaError

        try:
            return future.get()
        except Py4JJavaError as error:
            cause = error.java_exception.getCause() or error.java_exception
            raise PipelineError(f"{bootstrap(self._source)} does not answer: {cause.getMessage()}") from None

    def topics(self) -> set[str]:
        """All but the broker's own."""
        return set(self._ask(self._admin.listTopics().names()))

    def partitions(self, topics: Iterable[str]) -> dict[str, list[int]]:
        found = self._ask(self._admin.describeTopics(list(topics)).allTopicNames())
        return {name: sorted(each.partition() for each in found[name].partitions()) for name in found}

    def earliest(self, partitions: dict[str, list[int]]) -> Offsets:
        return self._offsets(partitions, self._jvm.org.apache.kafka.clients.admin.OffsetSpec.earliest())

    def latest(self, partitions: dict[str, list[int]]) -> Offsets:
        return self._offsets(partitions, self._jvm.org.apache.kafka.clients.admin.OffsetSpec.latest())

    def _offsets(self, partitions: dict[str, list[int]], spec: Any) -> Offsets:
        wanted = self._jvm.java.util.HashMap()
        for topic, indexes in partitions.items():
            for index in indexes:
                wanted.put(self._jvm.org.apache.kafka.common.TopicPartition(topic, index), spec)
        level = self._jvm.org.apache.kafka.common.IsolationLevel.valueOf(self._source.isolation.upper())
        options = self._jvm.org.apache.kafka.clients.admin.ListOffsetsOptions(level)
        found = self._ask(self._admin.listOffsets(wanted, options).all())
        offsets: Offsets = {}
        for each in found:
            offsets.setdefault(each.topic(), {})[each.partition()] = found[each].offset()
        return offsets
