"""What a new image makes a broker lead."""

import random
from pathlib import Path

from trilogue.broker.cluster.image import Image, PartitionState, Topic
from trilogue.broker.config import DEVELOPMENT, BrokerConfig
from trilogue.broker.partitions.replicas import UNREGISTERED, Replicas
from trilogue.storage.directory import DataDirectory

NOW = 1_700_000_000_000
ID = bytes(15) + b"\x01"


def image(state: PartitionState) -> Image:
    return Image(topics={"t": Topic("t", ID, (state,))}, topic_names={ID: "t"})


def led_in(epoch: int, broker_epoch: int) -> PartitionState:
    return PartitionState((1, 2), 1, epoch, (1, 2), broker_epoch)


def test_what_a_run_before_was_given_is_not_led_on(tmp_path: Path):
    directory = DataDirectory(tmp_path, cluster_id="c", node_id=1, new_id=bytes(16))
    config = BrokerConfig.parse({**DEVELOPMENT, "log.dirs": str(tmp_path)})
    replicas = Replicas(1, [directory], lambda: NOW, random.Random(1), lambda: config)
    replicas.broker_epoch = UNREGISTERED
    before, now = image(led_in(4, 10)), image(led_in(5, 20))

    replicas.apply(Image(), before)
    partition = replicas.find("t", 0)
    assert partition is not None
    assert not partition.leads, "another run of ours was elected"
    replicas.registered(20, before)
    assert not partition.leads
    replicas.apply(before, now)
    assert (partition.leads, partition.leader_epoch) == (True, 5)

    replicas.apply(now, image(led_in(5, 20)._replace(isr=(1,), version=1)))
    assert partition.state.isr == (1,), "what it leads it goes on with"
    replicas.registered(30, image(led_in(5, 20)._replace(version=2)))
    assert (partition.leads, partition.state.isr) == (True, (1, 2)), "also if it has to be registered again"
    replicas.close(20)


def test_what_was_given_before_it_was_known_that_we_are_registered_is_led_then(tmp_path: Path):
    directory = DataDirectory(tmp_path, cluster_id="c", node_id=1, new_id=bytes(16))
    config = BrokerConfig.parse({**DEVELOPMENT, "log.dirs": str(tmp_path)})
    replicas = Replicas(1, [directory], lambda: NOW, random.Random(1), lambda: config)
    replicas.broker_epoch = UNREGISTERED
    now = image(led_in(5, 20))

    replicas.apply(Image(), now)
    replicas.registered(20, now)
    partition = replicas.find("t", 0)
    assert partition is not None
    assert partition.leads
    replicas.close(20)
