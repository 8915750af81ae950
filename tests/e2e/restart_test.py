"""kill -9 of the coordinator and of agents at the worst moments, then a restart: a stated end, nothing twice."""

import json
import signal
import unittest

from faults_test import fault
from harness import PATIENCE, SMALL, Fleet, wait_for

CASES, ITERATIONS = 20, 10
# About two seconds on one rank, which needs nobody else: it runs on without a coordinator.
STEADY = ["gemm", "--m", f"1:{CASES}:+1", "--n", 1, "--k", 1, "--iters", ITERATIONS, "--warmup", 0, "--backend", "fake"]
REAL_TIME = {"latency_ns": 8_000_000, "real_time": True}


class CoordinatorKilled(unittest.TestCase):
    def test_while_a_node_has_not_heard_of_the_job(self):
        with Fleet(2, lease="15s") as fleet:
            fleet.pause(fleet.agents["n1"].pid)
            job_id = fleet.detach(*SMALL, "--nodes", 2, "--backend", "fake+fake")
            fleet.wait_workers("n2")
            self.assertEqual(fleet.job(job_id)["job"]["state"], "STARTING")
            fleet.kill(fleet.server)
            fleet.agents["n1"].send_signal(signal.SIGCONT)
            fleet.start_server()
            job = fleet.wait_state(job_id, "SUCCEEDED", "FAILED")["job"]
            self.assertEqual((job["state"], job["attempt"]), ("SUCCEEDED", 1), job)
            fleet.nothing_left()
            fleet.all_ready()

    def test_while_a_worker_hangs_at_its_start(self):
        with Fleet(2, lease="15s") as fleet:
            job_id = fleet.detach(*SMALL, "--nodes", 2, "--backend", "fake", "--deadline",
                                  f"spawn={3 * PATIENCE:.0f}s", script=fault("spawn", "hang"))
            fleet.wait_workers("n2")
            self.assertEqual(fleet.job(job_id)["job"]["state"], "STARTING")
            fleet.kill(fleet.server)
            fleet.start_server()
            job = fleet.wait_state(job_id, "SUCCEEDED", "FAILED")["job"]
            self.assertEqual(job["state"], "FAILED", job)
            failure = job["failure"]
            self.assertEqual((failure["node"], failure["rank"], failure["phase"], failure["code"]),
                             ("n2", 1, "spawn", "DEADLINE_EXCEEDED"), failure)
            fleet.nothing_left()
            fleet.all_ready()

    def test_while_a_job_is_being_cancelled(self):
        with Fleet(2, lease="15s") as fleet:
            job_id = fleet.detach(*SMALL, "--nodes", 2, "--backend", "fake", script=fault("timed", "hang"))
            wait_for("timed iterations", lambda: fleet.job(job_id)["job"]["timeline"]["first_timed"])
            self.assertEqual(fleet.ctl("job", "cancel", job_id).code, 0)
            # The rank that hangs does not hear of it: its grace is not over yet.
            self.assertEqual(fleet.job(job_id)["job"]["state"], "RUNNING")
            fleet.kill(fleet.server)
            fleet.start_server()
            job = fleet.wait_state(job_id, "CANCELLED", "SUCCEEDED", "FAILED")["job"]
            self.assertEqual((job["state"], job["reason"]), ("CANCELLED", "cancelled"), job)
            self.assertEqual(fleet.ctl("job", "watch", job_id).code, 5)
            fleet.nothing_left()
            fleet.all_ready()


class ResultsNotYetAcknowledged(unittest.TestCase):
    def run_until_some_cases_are_stored(self, fleet, *args):
        job_id = fleet.detach(*STEADY, *args, script=REAL_TIME)
        wait_for("stored cases", lambda: fleet.job(job_id)["job"]["cases_done"] >= 3)
        return job_id

    def check_nothing_twice(self, fleet, job_id, statuses):
        """Each case once, with all its samples when it passed; returns how many passed."""
        document = fleet.ctl("-o", "json", "result", "export", job_id, "--samples").json()
        self.assertEqual([case["index"] for case in document["cases"]], list(range(CASES)))
        self.assertLessEqual({case["status"] for case in document["cases"]}, statuses)
        passed = {case["index"] for case in document["cases"] if case["status"] == "PASSED"}
        for index in passed:
            self.assertEqual(document["cases"][index]["metrics"]["time"]["n"], ITERATIONS)
        blobs = [(blob["case_index"], blob["rank"], blob["metric"], json.dumps(blob["labels"]))
                 for blob in document["samples"]]
        self.assertEqual(len(blobs), len(set(blobs)))
        for blob in document["samples"]:
            self.assertLessEqual(len(blob["values"]), ITERATIONS)
            if blob["case_index"] in passed and blob["metric"] == "time":
                self.assertEqual(len(blob["values"]), ITERATIONS)
        self.assertLessEqual(passed, {blob["case_index"] for blob in document["samples"]})
        return len(passed)

    def test_are_delivered_by_the_next_agent_and_the_job_ends_well(self):
        with Fleet(1, lease="15s") as fleet:
            job_id = self.run_until_some_cases_are_stored(fleet)
            fleet.kill(fleet.server)
            wait_for("the worker to end on its own", lambda: not fleet.workers("n1"))
            self.assertGreater(fleet.metric("n1", "param_agent_spool_results"), 0)
            fleet.kill(fleet.agents["n1"])
            fleet.start_server()
            self.assertEqual(fleet.job(job_id)["job"]["state"], "RUNNING")
            fleet.start_agent("n1")
            job = fleet.wait_state(job_id, "SUCCEEDED", "FAILED")["job"]
            self.assertEqual((job["state"], job["attempt"]), ("SUCCEEDED", 1), job)
            self.assertEqual(self.check_nothing_twice(fleet, job_id, {"PASSED"}), CASES)
            wait_for("an empty spool", lambda: fleet.metric("n1", "param_agent_spool_results") == 0)
            fleet.all_ready()

    def kill_both_in_mid_run(self, fleet, job_id):
        """The coordinator first, the agent when it holds at least two whole cases that nobody took."""
        fleet.kill(fleet.server)
        before = fleet.metric("n1", "param_agent_spool_results")
        wait_for("results on disk", lambda: fleet.metric("n1", "param_agent_spool_results") > before + 20)
        self.assertTrue(fleet.workers("n1"))
        fleet.kill(fleet.agents["n1"])
        fleet.start_server()
        stored = fleet.job(job_id)["job"]["cases_done"]
        fleet.start_agent("n1")
        return stored

    def test_of_an_attempt_that_died_with_its_agent_are_delivered(self):
        with Fleet(1, lease="15s") as fleet:
            job_id = self.run_until_some_cases_are_stored(fleet)
            stored = self.kill_both_in_mid_run(fleet, job_id)
            job = fleet.wait_state(job_id, "SUCCEEDED", "FAILED")["job"]
            self.assertEqual(job["state"], "FAILED", job)
            failure = job["failure"]
            self.assertEqual((failure["code"], failure["node"], failure["rank"]), ("UNAVAILABLE", "n1", 0), failure)
            self.assertIn("agent", failure["cause"])
            self.assertGreater(self.check_nothing_twice(fleet, job_id, {"PASSED", "FAILED"}), stored)
            fleet.nothing_left()
            fleet.all_ready()

    def test_of_a_lost_attempt_do_not_mix_with_those_of_the_next(self):
        with Fleet(1, lease="15s") as fleet:
            job_id = self.run_until_some_cases_are_stored(fleet, "--retries", 1)
            self.kill_both_in_mid_run(fleet, job_id)
            job = fleet.wait_state(job_id, "SUCCEEDED", "FAILED")["job"]
            self.assertEqual((job["state"], job["attempt"]), ("SUCCEEDED", 2), job)
            self.assertEqual(self.check_nothing_twice(fleet, job_id, {"PASSED"}), CASES)
            fleet.all_ready()


if __name__ == "__main__":
    unittest.main()
