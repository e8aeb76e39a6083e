"""The same requests to Apache Kafka and to trilogue, the answers compared field by field.

    scenarios/x.py      what is asked: functions under `@scenario(XRequest)`, run once for every version of the API
    asking.py           what a scenario is given: asks one broker in one version, and writes down the answers
    connection.py       a raw socket that speaks Kafka through trilogue.wire, and may say nonsense
    plain.py            an answer as plain JSON, without what may differ
    may_differ.py       the list of what may differ, with a reason for each
    compare.py          where two answers differ
    targets.py          starts either broker, with the same settings
    runner.py           `run_against(target)`: every scenario in every version, answers by name
    recorded.json       what Apache Kafka 4.3.1 answered; made by `python -m compat_tests.differential.record`

`test_differential.py` compares ours with the recording (no Java needed), and, marked `java`, the recording with a
living Apache Kafka.  A new API needs a file in `scenarios/`, or the test says that it is not compared.

This is the one place in compat_tests that may import trilogue, and only `wire`: it needs a client that can say what
no decent client would.
"""
