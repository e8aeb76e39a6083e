"""Ours answers as Apache Kafka 4.3.1 did when it was recorded; and Apache Kafka still does."""

import os

import jars
import pytest

from compat_tests.differential import recording, runner, targets
from compat_tests.differential.asking import SCENARIOS
from compat_tests.differential.compare import report
from compat_tests.differential.may_differ import KNOWN, known
from trilogue.wire.catalog import requests

runner.load()
RECORDED_OFFER, RECORDED = recording.read()
APIS = sorted({each.api for each in SCENARIOS})

NOT_COMPARED_YET = {
    # Groups of the newer kinds.
    "AlterShareGroupOffsets",
    "DeleteShareGroupOffsets",
    "DeleteShareGroupState",
    "DescribeShareGroupOffsets",
    "InitializeShareGroupState",
    "ReadShareGroupState",
    "ReadShareGroupStateSummary",
    "ShareAcknowledge",
    "ShareFetch",
    "ShareGroupDescribe",
    "ShareGroupHeartbeat",
    "StreamsGroupDescribe",
    "StreamsGroupHeartbeat",
    "WriteShareGroupState",
    # Security and quotas.
    "AlterClientQuotas",
    "CreateAcls",
    "CreateDelegationToken",
    "DeleteAcls",
    "DescribeAcls",
    "DescribeClientQuotas",
    "DescribeDelegationToken",
    "ExpireDelegationToken",
    "RenewDelegationToken",
    "SaslAuthenticate",
    "SaslHandshake",
    # Quorums, which we do not have.
    "AddRaftVoter",
    "RemoveRaftVoter",
}
"""Nobody has written down yet what to ask of these; whoever builds one writes its scenario."""

CASES = 10
"""The least that is asked of an API."""


def name_of(key: int) -> str:
    return requests()[key].__name__.removesuffix("Request")


@pytest.fixture(scope="module")
def ours(tmp_path_factory):
    """What we offer, and what we answer."""
    with targets.trilogue(tmp_path_factory.mktemp("trilogue")) as address:
        offered = runner.offered(address)
        return offered, runner.run_against(address, runner.shared(offered, RECORDED_OFFER))


@pytest.mark.parametrize("api", APIS)
def test_we_answer_as_apache_kafka_did(ours, api):
    found = report(RECORDED, ours[1], api)

    told = [f"v{versions}: {each}" for each, versions in found.items() if not known(each)]
    assert told == []


def test_every_api_is_asked_at_least_ten_things(ours):
    asked = {api: len(set().union(*versions.values())) for api, versions in ours[1].items()}

    assert {api: count for api, count in asked.items() if count < CASES} == {}


def test_known_differences_are_still_there(ours):
    found = [known(each) for api in APIS for each in report(RECORDED, ours[1], api)]

    assert [each for each in KNOWN if each not in found] == []


def test_every_version_that_both_offer_is_compared(ours, capsys):
    offered, answers = ours
    both = {
        (name_of(key), version) for key, found in runner.shared(offered, RECORDED_OFFER).items() for version in found
    }
    compared = {(api, version) for api, versions in answers.items() for version in versions if versions[version]}

    count = sum(len(cases) for versions in answers.values() for cases in versions.values())
    with capsys.disabled():
        print(f"\n{len(compared)} pairs of API and version compared with Apache Kafka, {count} answers")
    assert {api for api, _ in both - compared} <= NOT_COMPARED_YET
    assert NOT_COMPARED_YET.isdisjoint(APIS)
    assert compared <= {(api, version) for api, versions in RECORDED.items() for version in versions}


def test_we_offer_every_version_that_apache_kafka_offers_of_what_we_answer(ours):
    for key, versions in ours[0].items():
        theirs = RECORDED_OFFER[key]
        assert versions.start <= theirs.start, name_of(key)
        assert versions.stop == theirs.stop, name_of(key)


@pytest.mark.java
@pytest.mark.slow
def test_apache_kafka_still_answers_as_recorded(tmp_path):
    try:
        with targets.apache_kafka(tmp_path) as address:
            offered = runner.offered(address)
            answers = runner.run_against(address, runner.shared(offered, offered))
    except jars.Missing as missing:
        if os.environ.get("CI") == "true":
            pytest.fail(f"CI needs Java: {missing}", pytrace=False)
        pytest.skip(f"needs Java: {missing}")

    assert offered == RECORDED_OFFER
    assert {api: list(report(RECORDED, answers, api)) for api in APIS} == {api: [] for api in APIS}
