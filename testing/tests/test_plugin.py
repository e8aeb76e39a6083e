"""The pytest plugin, in a project of somebody else's."""

import pytest

pytest_plugins = ["pytester"]

ASKS = """
    import socket

    def ready(broker):
        with socket.create_connection((broker.host, broker.port), timeout=5):
            return True
"""


@pytest.fixture
def project(pytester):
    pytester.makeini("[pytest]\naddopts = --strict-markers\nfilterwarnings = error\n")
    return pytester


def test_every_test_has_a_broker_of_its_own(project):
    project.makepyfile(
        ASKS
        + """
    seen = []

    def test_one(trilogue):
        assert ready(trilogue)
        seen.append(trilogue.server)

    def test_other(trilogue):
        assert ready(trilogue)
        assert trilogue.server is not seen[0]
        assert seen[0].stopped.is_set()
    """
    )

    project.runpytest().assert_outcomes(passed=2)


def test_a_marker_brings_settings(project):
    project.makepyfile("""
    import pytest

    @pytest.mark.trilogue({"log.retention.hours": 1}, num_partitions=3)
    def test_settings(trilogue):
        assert trilogue.server.broker.config["num.partitions"] == 3
        assert trilogue.server.broker.config["log.retention.hours"] == 1
    """)

    project.runpytest().assert_outcomes(passed=1)


def test_one_broker_for_the_session(project):
    project.makepyfile(
        ASKS
        + """
    seen = []

    def test_one(trilogue_session):
        assert ready(trilogue_session)
        seen.append(trilogue_session)

    def test_other(trilogue_session):
        trilogue_session.reset()
        assert seen == [trilogue_session]
    """
    )

    project.runpytest().assert_outcomes(passed=2)


def test_a_setting_that_does_not_exist_is_an_error_of_that_test(project):
    project.makepyfile("""
    import pytest

    @pytest.mark.trilogue(num_partition=3)
    def test_settings(trilogue):
        pass
    """)

    result = project.runpytest()

    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*did you mean num.partitions?*"])


def test_fixtures_say_what_they_are(project):
    result = project.runpytest("--fixtures", "-q")

    result.stdout.fnmatch_lines(["trilogue -- *", "*A broker that speaks Kafka's protocol*"])


def test_it_costs_nothing_where_it_is_not_used(project):
    project.makepyfile("""
    import sys

    def test_nothing_is_loaded():
        ours = {name for name in sys.modules if name.startswith("trilogue")}
        assert ours == {"trilogue", "trilogue.testing", "trilogue.testing.plugin"}
        assert "trio" not in sys.modules
    """)

    project.runpytest_subprocess().assert_outcomes(passed=1)


def test_a_module_has_one_broker_with_the_settings_of_its_marker(project):
    project.makepyfile("""
    import pytest

    pytestmark = pytest.mark.trilogue(num_partitions=3)
    seen = []

    def test_one(trilogue_module):
        assert trilogue_module.server.broker.config["num.partitions"] == 3
        seen.append(trilogue_module)

    def test_other(trilogue_module):
        assert seen == [trilogue_module]
    """)

    project.runpytest().assert_outcomes(passed=2)


def test_settings_of_the_ini_file_are_for_all_and_markers_come_before_them(project):
    project.makeini("[pytest]\ntrilogue_settings =\n    num.partitions=3\n    log.retention.hours=1\n")
    project.makepyfile("""
    import pytest

    def settings(broker):
        return broker.server.broker.config["num.partitions"], broker.server.broker.config["log.retention.hours"]

    def test_session(trilogue_session):
        assert settings(trilogue_session) == (3, 1)

    def test_module(trilogue_module):
        assert settings(trilogue_module) == (3, 1)

    @pytest.mark.trilogue(num_partitions=5)
    def test_own(trilogue, trilogue_session):
        assert settings(trilogue) == (5, 1)
        assert settings(trilogue_session) == (3, 1)
    """)

    project.runpytest().assert_outcomes(passed=3)


def test_settings_that_nobody_can_honour_are_an_error(project):
    project.makepyfile("""
    import pytest

    @pytest.mark.trilogue(num_partitions=3)
    def test_session(trilogue_session):
        pass

    @pytest.mark.trilogue(num_partitions=3)
    class TestModule:
        def test_module(self, trilogue_module):
            pass
    """)

    result = project.runpytest()

    result.assert_outcomes(errors=2)
    result.stdout.fnmatch_lines(["*cannot be given to trilogue_session here*trilogue_settings*"])
    result.stdout.fnmatch_lines(["*cannot be given to trilogue_module here*pytestmark*"])


def test_a_line_of_the_ini_file_that_is_no_setting_is_said(project):
    project.makeini("[pytest]\ntrilogue_settings = num.partitions\n")
    project.makepyfile("def test_it(trilogue): pass")

    result = project.runpytest()

    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*write name=value*"])


def test_a_marked_class_may_have_tests_without_a_broker(project):
    project.makepyfile("""
    import pytest

    pytestmark = pytest.mark.trilogue(num_partitions=3)

    def test_nothing():
        pass
    """)

    project.runpytest().assert_outcomes(passed=1)


def test_a_cluster_of_the_tests_own(project):
    project.makepyfile("""
    import pytest

    def test_three(trilogue_cluster):
        assert len(trilogue_cluster.bootstrap.split(",")) == 3

    @pytest.mark.trilogue(brokers=2, num_partitions=5)
    def test_two(trilogue_cluster, trilogue):
        assert len(trilogue_cluster) == 2
        for broker in (trilogue_cluster[2], trilogue):
            assert broker.server.broker.config["num.partitions"] == 5
    """)

    project.runpytest().assert_outcomes(passed=2)
