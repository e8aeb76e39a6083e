"""ListConfigResources: what has settings."""

from typing import Any

from compat_tests.differential.asking import Asking, scenario
from trilogue.wire.apis.incremental_alter_configs import IncrementalAlterConfigsRequest
from trilogue.wire.apis.list_config_resources import ListConfigResourcesRequest

TOPIC, BROKER, LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32


@scenario(ListConfigResourcesRequest)
def listing(ask: Asking) -> None:
    ask.topic("listed")
    configs = IncrementalAlterConfigsRequest.Resource.Config
    for kind, name, setting, value in (
        (CLIENT_METRICS, ask.name("metrics"), "interval.ms", "5000"),
        (GROUP, ask.name("group"), "consumer.session.timeout.ms", "50000"),
    ):
        asked = IncrementalAlterConfigsRequest.Resource(
            resource_type=kind,
            resource_name=name,
            configs=[configs(name=setting, config_operation=0, value=value)],
        )
        (done,) = ask.quietly(IncrementalAlterConfigsRequest(resources=[asked], validate_only=False), 1).responses
        assert done.error_code == 0, done

    ask.catch_up()

    def ours_only(told: dict[str, Any]) -> dict[str, Any]:
        ours = ("listed", "metrics", "group", "1", "")
        found = [each for each in told["config_resources"] if each["resource_name"] in ours]
        return told | {"config_resources": sorted(found, key=repr)}

    def list_them(case: str, *kinds: int) -> None:
        ask(case, ListConfigResourcesRequest(resource_types=list(kinds)), tidy=ours_only)

    list_them("all")
    for kind in (TOPIC, BROKER, LOGGER, CLIENT_METRICS, GROUP):
        list_them(f"kind {kind}", kind)
    list_them("two kinds", TOPIC, GROUP)
    list_them("the same kind twice", GROUP, GROUP)
    for kind in (0, 1, 3, 64, -1):
        list_them(f"kind {kind}, which is none", kind)
    list_them("a kind and one that is none", TOPIC, 3)
