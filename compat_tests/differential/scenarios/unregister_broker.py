"""UnregisterBroker: of brokers that are not there.  Of the one that is, it would be the end of the scenarios."""

from compat_tests.differential.asking import Asking, scenario
from trilogue.wire.apis.unregister_broker import UnregisterBrokerRequest


@scenario(UnregisterBrokerRequest)
def nobody(ask: Asking) -> None:
    for broker in (0, 2, 9, 1000, -1, -2, 2**31 - 1, -(2**31)):
        ask(f"broker {broker}", UnregisterBrokerRequest(broker_id=broker))
    ask("without a client id", UnregisterBrokerRequest(broker_id=9), client_id=None)
    ask("bytes behind the request", UnregisterBrokerRequest(broker_id=9), trailing=b"more")
