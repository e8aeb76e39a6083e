"""What upkeep finds and removes."""

import random

import trio

from trilogue.broker.config import BrokerConfig
from trilogue.broker.partitions.replicas import Replicas
from trilogue.broker.partitions.upkeep import Upkeep
from trilogue.storage.directory import DataDirectory
from trilogue.storage.files import OpenFiles


def test_folders_of_deleted_partitions_that_an_earlier_life_has_left_are_removed(tmp_path):
    left = tmp_path / f"gone-0.{'ab' * 16}-delete"
    left.mkdir()
    (left / "00000000000000000000.log").write_bytes(b"x")
    home = DataDirectory(tmp_path, cluster_id="c", node_id=1, new_id=bytes(16), pool=OpenFiles())
    replicas = Replicas(1, [home], lambda: 0, random.Random(1), lambda: BrokerConfig.parse({"node.id": "1"}))
    assert left.exists(), "the start does not wait for it"

    trio.run(Upkeep(replicas, lambda: 0).expire)

    assert not left.exists()
    replicas.close(broker_epoch=1)
