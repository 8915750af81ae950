"""How long the service itself takes: from submit to the first timed iteration, and jobs per second.

Four agents on this machine, direct launch. Times are the coordinator's timeline.
"""

import statistics
import sys
import time

sys.path.insert(0, __file__.rsplit("/", 2)[0] + "/e2e")
from harness import SMALL, Fleet  # noqa: E402

COLLECTIVE = ("collective", "--op", "all_reduce", "--size", "1K", "--iters", 20)
PAIRS = int(sys.argv[1]) if len(sys.argv) > 1 else 30


def quantile(values, q):
    return statistics.quantiles(values, n=100, method="inclusive")[q - 1]


def latency(fleet, backend, what=SMALL, bar=150):
    times = []
    for _ in range(PAIRS):
        line = fleet.submit(*what, "--nodes", 4, "--backend", backend).json()["job"]["timeline"]
        times.append((line["first_timed"] - line["submitted"]) / 1e6)
    print(f"submit to first timed iteration, 4 local agents, {what[0]} on {backend}: p50 {statistics.median(times):.0f} ms, "
          f"p95 {quantile(times, 95):.0f} ms, n={PAIRS} (bar: p50 <= {bar} ms)")


def throughput(fleet, jobs=100):
    """100 jobs of one node each wait while all nodes are drained; then the queue runs."""
    for i in range(1, 5):
        fleet.ctl("node", "drain", f"n{i}")
    ids = [fleet.detach("gemm", "--m", 8, "--n", 8, "--k", 8, "--iters", 1, "--backend", "fake") for _ in range(jobs)]
    for i in range(1, 5):
        fleet.ctl("node", "resume", f"n{i}")
    lines = [fleet.wait_state(job_id, "SUCCEEDED", "FAILED", timeout=120)["job"] for job_id in ids]
    assert all(job["state"] == "SUCCEEDED" for job in lines)
    span = (max(j["timeline"]["finished"] for j in lines) - min(j["timeline"]["placed"] for j in lines)) / 1e9
    print(f"queue: {jobs} jobs of the fake backend on 4 agents in {span:.2f} s: {jobs / span:.0f} jobs/s (bar: >= 20)")


with Fleet(4) as fleet:
    begin = time.monotonic()
    latency(fleet, "cpu")
    latency(fleet, "fake")
    latency(fleet, "cpu+gloo", COLLECTIVE, 400)
    throughput(fleet)
    print(f"service_bench took {time.monotonic() - begin:.0f} s")
