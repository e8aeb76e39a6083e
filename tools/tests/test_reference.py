"""The generated documents are what the code says."""

import reference


def test_generated_documents_are_up_to_date():
    stale = [path.name for path, text in reference.documents().items() if not path.exists() or path.read_text() != text]

    assert stale == [], "run `make docs`"


def test_what_is_obeyed_is_found_and_what_is_not_is_not():
    working = reference.obeyed()

    assert {"retention.ms", "log.retention.ms", "log.retention.hours", "num.partitions", "max.connections"} <= working
    assert {"num.network.threads", "remote.storage.enable", "ssl.keystore.location"} & working == set()
