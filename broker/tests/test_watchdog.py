"""Who holds the loop is named."""

import logging
import time

from trilogue.broker.requests.registry import APIS
from trilogue.broker.tests.running import Raw, running
from trilogue.wire.apis.api_versions import ApiVersionsRequest, ApiVersionsResponse
from trilogue.wire.apis.list_groups import ListGroupsRequest, ListGroupsResponse


def slow(broker, request, peer):
    time.sleep(0.8)
    return ListGroupsResponse(groups=[])


def test_a_loop_that_does_not_turn_is_said_once_with_request_client_and_stack(monkeypatch, caplog):
    key = ListGroupsRequest.api_key
    with running() as server, Raw(server) as raw, caplog.at_level(logging.WARNING):
        monkeypatch.setitem(APIS, key, APIS[key]._replace(handler=slow))
        raw.ask(ListGroupsRequest(), 4, ListGroupsResponse)
        raw.ask(ApiVersionsRequest(), 0, ApiVersionsResponse)

    said = [record.message for record in caplog.records if "has not turned" in record.message]
    assert len(said) == 1
    assert "ListGroupsRequest of 127.0.0.1, client id 'raw'; " in said[0]
    assert said[0].endswith("slow")
