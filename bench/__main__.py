"""Side by side with Apache Kafka: every benchmark, one table.

python -m bench                                  everything, into docs/
python -m bench --only produce,latency --rounds 3 --out /tmp/result
"""

import argparse
import shutil
import sys
import tempfile
from functools import partial
from pathlib import Path

from bench import cluster, failover, footprint, groups, growth, pipeline, report, spark_read, trials
from bench.brokers import Apache, Ours, running
from bench.storage import AHEAD_BYTES, GIB, touch_memory
from bench.trial import Fact, Row, measure

SECTIONS = [
    "produce",
    "consume",
    "latency",
    "requests",
    "ceiling",
    "groups",
    "tools",
    "footprint",
    "Spark",
    "cluster",
    "failover",
    "growth",
]


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description="trilogue beside Apache Kafka, in one run")
    parser.add_argument("--only", metavar="SECTIONS", help=f"some of: {', '.join(SECTIONS)}")
    parser.add_argument("--rounds", type=int, default=5, help="how often each is measured (default 5)")
    parser.add_argument("--out", type=Path, help="where the results go (default: docs/, for everything; else nowhere)")
    parser.add_argument("--folder", help="where the data goes while it runs (default: the temporary folder)")
    given = parser.parse_args()
    given.sections = given.only.split(",") if given.only else SECTIONS
    if unknown := [each for each in given.sections if each not in SECTIONS]:
        parser.error(f"no section named {', '.join(unknown)}; there are {', '.join(SECTIONS)}")
    if given.rounds < 1:
        parser.error("--rounds must be at least 1")
    if given.out is None and not given.only:
        given.out = Path(__file__).parent.parent / "docs"
    return given


def main() -> int:
    given = arguments()
    folder = Path(tempfile.mkdtemp(dir=given.folder, prefix="bench-"))
    rows: list[Row] = []
    grown: list[growth.Grown] = []
    known: list[Fact] = []
    failed: list[str] = []
    try:
        touch_memory(folder, 4 * GIB)
        if "footprint" in given.sections:
            rows += footprint.starts(folder, given.rounds)
        wanted = [each for each in (*trials.all_trials(), *groups.trials()) if each.section in given.sections]
        if wanted or "Spark" in given.sections:
            with running(Ours(folder / "ours")) as ours, running(Apache(folder / "apache")) as theirs:
                for trial in wanted:
                    try:
                        rows += measure(trial, (ours, theirs), given.rounds, partial(touch_memory, folder, AHEAD_BYTES))
                    except (AssertionError, RuntimeError, OSError) as error:  # the others are not lost with it
                        failed.append(f"{trial.section}: {trial.name}: {error}")
                if "footprint" in given.sections:
                    rows.append(footprint.loaded(ours, theirs))
                if "Spark" in given.sections:
                    with pipeline.spark_session(folder) as spark:
                        rows += measure(spark_read.trial(spark), (ours, theirs), given.rounds)
        if "cluster" in given.sections:
            rows += cluster.side_by_side(folder, given.rounds)
            known += cluster.many_partitions(folder / "many")
        if "failover" in given.sections:
            rows += failover.trials(folder / "failover")
        if "growth" in given.sections:
            grown += growth.all_growth(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    rows.sort(key=lambda row: SECTIONS.index(row.section))
    print(report.text(rows, known, grown))
    if given.out is not None:
        report.write(rows, known, grown, given.rounds, given.out)
    for problem in failed:
        print(f"failed: {problem}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
