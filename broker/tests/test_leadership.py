"""Who leads, where replicas are put, and who is known: what the controller sees to among several brokers."""

from trilogue.broker.tests.cluster import Cluster, eventually, run
from trilogue.broker.tests.test_replication import NOW, content, make, write
from trilogue.client.link import connect
from trilogue.client.tasks import Tasks
from trilogue.client.world import Address
from trilogue.storage.tests.making import batch
from trilogue.wire.apis.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from trilogue.wire.apis.metadata import MetadataRequest, MetadataResponse
from trilogue.wire.apis.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse
from trilogue.wire.errors import ErrorCode


def led_by_others(cluster: Cluster) -> int:
    """How many partitions somebody else leads than their first replica."""
    partitions = next(iter(cluster.servers.values())).broker.image.topics["t"].partitions
    return sum(state.leader != state.replicas[0] for state in partitions)


def test_the_controller_and_nobody_else_gives_leadership_back_to_first_replicas():
    async def story(cluster: Cluster) -> None:
        await make(cluster, partitions=6)
        await cluster.stop(1)
        await cluster.start(1)
        for index in range(6):
            await cluster.leader(index=index, isr=3)
        assert led_by_others(cluster) == 2

        brokers = [server.broker for server in cluster.servers.values()]
        for broker in sorted(brokers, key=lambda each: each.controller.holds):
            assert led_by_others(cluster) == 2
            await broker.controller.balance()
        await eventually(lambda: led_by_others(cluster) == 0)

    run(story, auto_leader_rebalance_enable="false")


def test_leadership_goes_back_by_itself():
    async def story(cluster: Cluster) -> None:
        await make(cluster, partitions=3)
        await cluster.stop(1)
        await cluster.start(1)
        await eventually(lambda: led_by_others(cluster) == 0)

    run(story, leader_imbalance_check_interval_seconds="1")


def test_replicas_are_in_different_racks_and_clients_hear_of_them():
    racks = {1: "a", 2: "a", 3: "b", 4: "b"}

    async def story(cluster: Cluster) -> None:
        for node_id, rack in racks.items():
            await cluster.start(node_id, broker_rack=rack)
        await make(cluster, replicas=2, partitions=8)
        states = cluster.servers[1].broker.image.topics["t"].partitions
        assert [{racks[each] for each in state.replicas} for state in states] == [{"a", "b"}] * 8

        link = await connect(Tasks(), Address("127.0.0.1", cluster.servers[3].listeners[0].port))
        known = await link.call(MetadataRequest(topics=[]), MetadataResponse)
        described = await link.call(DescribeClusterRequest(), DescribeClusterResponse)
        assert {each.node_id: each.rack for each in known.brokers} == racks
        assert {each.broker_id: each.rack for each in described.brokers} == racks
        link.close()

    run(story, count=0)


def test_an_election_that_loses_data_is_made_by_setting_only_and_said_loudly(caplog):
    async def story(cluster: Cluster) -> None:
        await make(cluster, replicas=2)
        leader = await cluster.leader(isr=2)
        behind = next(each for each in leader.state.replicas if each != leader.node_id)
        await cluster.kill(behind)
        await cluster.leader(isr=1)
        leader.append(batch(b"lost"), NOW, acks=1)
        await cluster.kill(leader.node_id)
        await cluster.start(behind)
        await eventually(lambda: cluster.partition(behind).state.leader == -1)
        assert unclean(cluster) == 0

        setting = {("topics", "t"): {"unclean.leader.election.enable": "true"}}
        await cluster.servers[behind].broker.controller.alter_configs(lambda image: setting)
        await cluster.leader(isr=1)
        assert unclean(cluster) == 1
        assert [line for line in caplog.messages if "unclean" in line] == [
            f"t-0: unclean election: broker {behind} leads in epoch 2 and was not in sync; what it lacks is lost"
        ]

    def unclean(cluster: Cluster) -> int:
        return sum(server.broker.controller.unclean_elections for server in cluster.servers.values())

    run(story)


def test_who_is_gone_stays_registered_until_somebody_unregisters_it():
    async def story(cluster: Cluster) -> None:
        await cluster.kill(3)
        await make(cluster)
        link = await connect(Tasks(), Address("127.0.0.1", cluster.servers[1].listeners[0].port))

        async def described(*, fenced: bool) -> list[tuple[int, bool]]:
            request = DescribeClusterRequest(include_fenced_brokers=fenced)
            answer = await link.call(request, DescribeClusterResponse)
            return sorted((each.broker_id, each.is_fenced) for each in answer.brokers)

        async def unregister(node_id: int) -> int:
            request = UnregisterBrokerRequest(broker_id=node_id)
            return int((await link.call(request, UnregisterBrokerResponse)).error_code)

        assert await described(fenced=True) == [(1, False), (2, False), (3, True)]
        assert await described(fenced=False) == [(1, False), (2, False)]
        await write(cluster, b"a")
        await cluster.start(3)
        await cluster.leader(isr=3)
        assert content(cluster, 3) == content(cluster, 1)

        assert await unregister(3) == ErrorCode.DUPLICATE_BROKER_REGISTRATION
        await cluster.stop(3)
        await eventually(lambda: 3 not in cluster.servers[1].broker.image.brokers)
        assert [await unregister(3), await unregister(3)] == [ErrorCode.NONE, ErrorCode.BROKER_ID_NOT_REGISTERED]
        assert await described(fenced=True) == [(1, False), (2, False)]
        await cluster.start(3)
        await cluster.leader(isr=3)
        assert await described(fenced=True) == [(1, False), (2, False), (3, False)]
        link.close()

    run(story)
