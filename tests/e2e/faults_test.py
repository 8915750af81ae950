"""Everything that can go wrong while a job runs: a stated end that names where, and nothing left."""

import os
import signal
import unittest

from harness import LONG, PATIENCE, SMALL, Fleet, FleetTest, alive, descendants, wait_for


def fault(at, kind, rank=1, **more):
    return {"faults": [{"at": at, "kind": kind, "rank": rank, **more}]}


class WorkerFaults(FleetTest):
    nodes = 2
    fleet_options = {"agent_args": ["--worker-file-limit", "8M"]}

    def fails(self, *args, script):
        result = self.fleet.submit(*SMALL, "--nodes", 2, "--backend", "fake+fake", *args, script=script)
        self.assertEqual(result.code, 1, result)
        document = result.json()
        self.assertEqual(document["job"]["state"], "FAILED")
        self.fleet.nothing_left()
        wait_for("both nodes to be free", lambda: set(self.fleet.node_states().values()) == {"ready"})
        return document

    def test_crash_in_each_phase_names_node_rank_phase_and_signal(self):
        for phase in ("spawn", "comm_init", "verify", "warmup", "timed", "teardown"):
            with self.subTest(phase):
                document = self.fails(script=fault(phase, "crash"))
                self.assert_failure(document, node="n2", rank=1, code="ABORTED", cause="SIGSEGV")

    def test_hang_in_each_phase_ends_at_the_deadline_of_that_phase(self):
        for phase in ("spawn", "comm_init", "verify", "warmup", "timed", "teardown"):
            with self.subTest(phase):
                document = self.fails("--deadline", f"{phase}={2 * PATIENCE:.0f}s", script=fault(phase, "hang"))
                self.assert_failure(document, node="n2", rank=1, phase=phase, code="DEADLINE_EXCEEDED")

    def test_silent_exit_is_named(self):
        document = self.fails(script=fault("timed", "exit"))
        self.assert_failure(document, node="n2", rank=1, cause="exited with 3")

    def test_garbage_on_the_socket_fails_the_rank_alone(self):
        document = self.fails(script=fault("timed", "garbage"))
        self.assert_failure(document, node="n2", rank=1, code="INVALID_ARGUMENT")

    def test_lies_about_results_are_refused(self):
        for lie in ('{"type":"samples","case":99,"metric":"time","unit":"s","labels":{},"values":""}',
                    '{"type":"case_end","case":0,"status":"SPLENDID","reason":"","scalars":{},"info":{}}'):
            with self.subTest(lie):
                document = self.fails(script=fault("warmup", "garbage", text=lie + "\n"))
                self.assert_failure(document, node="n2", rank=1, code="INVALID_ARGUMENT")

    def test_wrong_element_makes_the_case_wrong(self):
        document = self.fails(script=fault("case", "wrong"))
        self.assertEqual(document["cases"][0]["status"], "WRONG")

    def test_backend_error_is_passed_on(self):
        document = self.fails(script=fault("comm_init", "error", code=8, text="the card is on fire"))
        self.assert_failure(document, node="n2", rank=1, cause="the card is on fire")

    def test_log_flood_is_bounded_and_the_job_ends_well(self):
        result = self.fleet.submit(*SMALL, "--nodes", 2, "--backend", "fake", script=fault("timed", "flood", count=200000))
        self.assertEqual(result.code, 0, result)
        logs = self.fleet.ctl("job", "logs", result.json()["job"]["id"])
        self.assertEqual(logs.code, 0, logs)
        self.assertLess(len(logs.out), 4 << 20)
        self.assertIn("dropped", logs.out)

    def test_worker_that_fills_the_disk_is_stopped_and_its_files_are_gone(self):
        document = self.fails(script=fault("timed", "fill_disk", bytes=1 << 30))
        self.assert_failure(document, node="n2", rank=1, cause="fake-fill.bin")
        self.assertEqual(list(self.fleet.folder.glob("**/fake-fill.bin")), [])

    def test_slow_rank_is_marked_as_the_slowest(self):
        result = self.fleet.submit(*SMALL, "--nodes", 2, "--backend", "fake",
                                   script={"latency_ns": 1000000, "rank_latency_ns": {"1": 3000000}})
        self.assertEqual(result.code, 0, result)
        case = result.json()["cases"][0]
        self.assertEqual(case["metrics"]["time"]["slowest_rank"], 1)
        self.assertAlmostEqual(case["ranks"][1]["metrics"]["time"]["p50"], 3e-3, delta=1e-4)

    def test_killed_worker_fails_the_attempt_and_aborts_the_other(self):
        job_id = self.fleet.detach(*LONG, "--nodes", 2)
        worker = self.fleet.wait_workers("n2")[0]
        self.fleet.wait_state(job_id, "RUNNING")
        os.kill(worker, signal.SIGKILL)
        document = self.fleet.wait_state(job_id, "FAILED")
        self.assert_failure(document, node="n2", rank=1, cause="SIGKILL")
        self.fleet.nothing_left()

    def test_stopped_worker_is_killed_at_the_deadline(self):
        job_id = self.fleet.detach(*LONG, "--nodes", 2, "--deadline", f"timed={4 * PATIENCE:.0f}s")
        worker = self.fleet.wait_workers("n2")[0]
        wait_for("timed iterations", lambda: self.fleet.job(job_id)["job"]["timeline"]["first_timed"])
        os.kill(worker, signal.SIGSTOP)
        document = self.fleet.wait_state(job_id, "FAILED")
        self.assertEqual(document["job"]["failure"]["code"], "DEADLINE_EXCEEDED", document)
        self.fleet.nothing_left()


class AgentFaults(unittest.TestCase):
    def test_killed_agent_takes_its_workers_along_and_the_attempt_is_lost(self):
        with Fleet(2, lease="2s") as fleet:
            job_id = fleet.detach(*LONG, "--nodes", 2)
            fleet.wait_workers("n2")
            fleet.wait_state(job_id, "RUNNING")
            below = descendants(fleet.agents["n2"].pid)
            fleet.kill(fleet.agents["n2"])
            wait_for("its workers to be gone", lambda: not any(alive(p) for p in below), 10)
            document = fleet.wait_state(job_id, "FAILED")
            failure = document["job"]["failure"]
            self.assertEqual(failure["node"], "n2")
            self.assertIn("agent lost", failure["cause"])
            self.assertEqual(fleet.node_states()["n2"], "lost")
            wait_for("the other's worker to be gone", lambda: not descendants(fleet.agents["n1"].pid))

    def test_lost_attempt_is_repeated_with_retries(self):
        with Fleet(2, lease="2s") as fleet:
            job_id = fleet.detach(*LONG, "--retries", 1)
            fleet.wait_workers("n1")
            fleet.wait_state(job_id, "RUNNING")
            fleet.kill(fleet.agents["n1"])
            fleet.wait_workers("n2")
            job = fleet.wait_state(job_id, "RUNNING")["job"]
            self.assertEqual(job["attempt"], 2)
            self.assertEqual(job["nodes"], ["n2"])
            fleet.ctl("job", "cancel", job_id)
            fleet.wait_state(job_id, "CANCELLED")

    def test_restarted_agent_serves_again(self):
        with Fleet(1, lease="2s") as fleet:
            fleet.kill(fleet.agents["n1"])
            fleet.start_agent("n1")
            wait_for("n1 to be ready", lambda: fleet.node_states().get("n1") == "ready")
            self.assertEqual(fleet.submit(*SMALL).code, 0)

    def test_second_agent_of_one_name_is_refused_and_the_first_goes_on(self):
        with Fleet(1) as fleet:
            first = fleet.agents["n1"]
            fleet.start_agent("n1", state=fleet.folder / "other")
            wait_for("the refusal in its log", lambda: "taken" in (fleet.folder / "agent-n1.log").read_text())
            self.assertEqual(fleet.submit(*SMALL).code, 0)
            fleet.agents["n1-second"] = fleet.agents["n1"]
            fleet.agents["n1"] = first

    def test_two_agents_on_one_state_folder_are_refused(self):
        with Fleet(1) as fleet:
            second = fleet.start_agent("n2", state=fleet.folder / "agent-n1")
            self.assertNotEqual(second.wait(30 * PATIENCE), 0)
            self.assertIn("agent-n1", (fleet.folder / "agent-n2.log").read_text())


class CoordinatorFaults(unittest.TestCase):
    def test_killed_coordinator_resumes_the_running_job(self):
        with Fleet(2, lease="10s") as fleet:
            job_id = fleet.detach("gemm", "--m", 64, "--n", 64, "--k", 64, "--min-time", "3s", "--max-time", "3s", "--nodes", 2)
            fleet.wait_state(job_id, "RUNNING")
            fleet.kill(fleet.server)
            fleet.start_server()
            job = fleet.wait_state(job_id, "SUCCEEDED", "FAILED")["job"]
            self.assertEqual(job["state"], "SUCCEEDED", job)
            self.assertEqual(job["attempt"], 1)

    def test_queued_job_and_drained_node_survive_a_kill(self):
        with Fleet(1) as fleet:
            job_id = fleet.detach(*SMALL, "--nodes", 2)
            self.assertEqual(fleet.ctl("node", "drain", "n1").code, 0)
            fleet.kill(fleet.server)
            fleet.start_server()
            self.assertEqual(fleet.job(job_id)["job"]["state"], "QUEUED")
            wait_for("n1 to come back drained", lambda: fleet.node_states().get("n1") == "drained")
            self.assertEqual(fleet.ctl("node", "resume", "n1").code, 0)
            fleet.start_agent("n2")
            fleet.wait_state(job_id, "SUCCEEDED")

    def test_coordinator_gone_longer_than_the_lease_makes_agents_fence_themselves(self):
        with Fleet(1, lease="2s") as fleet:
            job_id = fleet.detach(*LONG)
            fleet.wait_workers("n1")
            fleet.wait_state(job_id, "RUNNING")
            fleet.kill(fleet.server)
            wait_for("the worker to be gone", lambda: not fleet.workers("n1"), 30)
            fleet.start_server()
            document = fleet.wait_state(job_id, "FAILED")
            self.assertEqual(document["job"]["failure"]["node"], "n1", document)

    def test_results_acknowledged_before_a_kill_are_all_there(self):
        with Fleet(2) as fleet:
            done = [fleet.submit(*SMALL, "--backend", "fake").json()["job"]["id"] for _ in range(5)]
            fleet.kill(fleet.server)
            fleet.start_server()
            for job_id in done:
                document = fleet.job(job_id)
                self.assertEqual(document["job"]["state"], "SUCCEEDED")
                self.assertEqual(document["cases"][0]["metrics"]["time"]["n"], 5)


if __name__ == "__main__":
    unittest.main()
