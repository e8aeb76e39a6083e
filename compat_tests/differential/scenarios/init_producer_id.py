"""InitProducerId without a transactional id."""

from compat_tests.differential.asking import Asking, scenario
from trilogue.wire.apis.init_producer_id import InitProducerIdRequest


@scenario(InitProducerIdRequest)
def idempotent(ask: Asking) -> None:
    fine = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)
    ask.until(lambda answer: not answer.error_code, fine, 0)  # Kafka fetches its first block of ids only now
    for case, fields in (
        ("a new producer", {}),
        ("another", {}),
        ("a timeout of 0", {"transaction_timeout_ms": 0}),
        ("a negative timeout", {"transaction_timeout_ms": -5}),
        ("a very long timeout", {"transaction_timeout_ms": 2**31 - 1}),
        ("an empty transactional id", {"transactional_id": ""}),
        ("an id it had, and an epoch", {"producer_id": 4711, "producer_epoch": 3}),
        ("an id without an epoch", {"producer_id": 4711}),
        ("an epoch without an id", {"producer_epoch": 3}),
        ("an id of -2", {"producer_id": -2, "producer_epoch": -2}),
        ("the last epoch", {"producer_id": 4711, "producer_epoch": 32767}),
    ):
        ask(case, InitProducerIdRequest(**({"transactional_id": None, "transaction_timeout_ms": 60_000} | fields)))
