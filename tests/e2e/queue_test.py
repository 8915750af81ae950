"""Who waits, for how long, and who goes first."""

import unittest

from harness import LONG, PATIENCE, SMALL, FleetTest, wait_for

FAKE = ["--backend", "fake"]


def seconds(number):
    return f"{number * PATIENCE:.0f}s"


class Queue(FleetTest):
    nodes = 2

    def block(self, *args):
        """A job that runs until it is cancelled, or the test ends."""
        job_id = self.fleet.detach(*LONG, *FAKE, *args)
        self.addCleanup(self.fleet.ctl, "job", "cancel", job_id)
        self.fleet.wait_state(job_id, "RUNNING")
        return job_id

    def cancel(self, *job_ids):
        for job_id in job_ids:
            self.assertEqual(self.fleet.ctl("job", "cancel", job_id).code, 0)
        for job_id in job_ids:
            self.fleet.wait_state(job_id, "CANCELLED", "SUCCEEDED")

    def placed(self, job_id):
        return self.fleet.wait_state(job_id, "SUCCEEDED")["job"]["timeline"]["placed"]

    def test_higher_priority_goes_first_and_equals_in_order(self):
        blocker = self.block("--nodes", 2)
        ids = {name: self.fleet.detach(*SMALL, *FAKE, "--nodes", 2, "--priority", priority)
               for name, priority in (("low", -1), ("first", 0), ("second", 0), ("high", 7))}
        for job_id in ids.values():
            self.assertEqual(self.fleet.job(job_id)["job"]["state"], "QUEUED")
        self.cancel(blocker)
        self.assertEqual(sorted(ids, key=lambda name: self.placed(ids[name])), ["high", "first", "second", "low"])

    def test_large_job_runs_though_small_ones_keep_coming(self):
        blockers = [self.block("--node", node) for node in ("n1", "n2")]
        large = self.fleet.detach(*SMALL, *FAKE, "--nodes", 2)
        small = [self.fleet.detach(*SMALL, *FAKE) for _ in range(2)]
        self.cancel(blockers[0])
        # One node is free, and kept for the large job: the small ones that come now could use it.
        wait_for("n1 to be free", lambda: self.fleet.node_states()["n1"] == "ready")
        small += [self.fleet.detach(*SMALL, *FAKE) for _ in range(2)]
        for job_id in small:
            wait_for(f"the reason of {job_id}",
                     lambda job_id=job_id: "an earlier job gets n1" in self.fleet.job(job_id)["job"]["reason"])
        for job_id in (large, *small):
            self.assertEqual(self.fleet.job(job_id)["job"]["state"], "QUEUED")
        self.cancel(blockers[1])
        small += [self.fleet.detach(*SMALL, *FAKE) for _ in range(2)]
        placed = self.placed(large)
        for job_id in small:
            self.assertGreater(self.placed(job_id), placed)

    def test_of_no_wait_jobs_at_once_one_gets_the_free_node(self):
        for _ in range(5):
            asked = [self.fleet.start_ctl("submit", *LONG, *FAKE, "--node", "n1", "--no-wait", "--detach")
                     for _ in range(4)]
            ends = [(*process.communicate(timeout=60 * PATIENCE), process.returncode) for process in asked]
            taken = [out.split()[0] for out, _, code in ends if code == 0]
            try:
                self.assertEqual(sorted(code for *_, code in ends), [0, 2, 2, 2], ends)
                for refusal in (err for _, err, code in ends if code == 2):
                    self.assertRegex(refusal, "cannot start now, and --no-wait was given: .*wait")
                self.fleet.wait_state(taken[0], "RUNNING")
            finally:
                self.cancel(*taken)
            self.fleet.all_ready()

    def test_timeout_of_a_queued_job_tells_what_it_waited_for(self):
        result = self.fleet.submit(*SMALL, "--nodes", 9, "--timeout", seconds(1))
        self.assertEqual(result.code, 5, result)
        job = result.json()["job"]
        self.assertEqual(job["state"], "TIMED_OUT")
        self.assertIn(f"--timeout {seconds(1)}", job["reason"])
        self.assertIn("needs 9 nodes; 2 ", job["reason"])
        text = self.fleet.ctl("job", "show", job["id"])
        self.assertIn("needs 9 nodes; 2 ", text.out)

    def test_timeout_counts_from_submit_and_frees_the_queue(self):
        blocker = self.block("--nodes", 2, "--timeout", seconds(4))
        result = self.fleet.submit(*SMALL, *FAKE, "--timeout", seconds(1))
        self.assertEqual(result.code, 5, result)
        self.assertIn(f"runs {blocker}", result.json()["job"]["reason"])
        self.assertEqual(self.fleet.submit(*SMALL, *FAKE).code, 0)  # after the blocker's own
        job = self.fleet.job(blocker)["job"]
        self.assertEqual(job["state"], "TIMED_OUT")
        self.assertIn(f"did not end within --timeout {seconds(4)}", job["reason"])
        self.fleet.nothing_left()

    def test_timeout_ends_a_job_whose_worker_hangs_at_its_start(self):
        script = {"faults": [{"at": "spawn", "kind": "hang", "rank": 1}]}
        result = self.fleet.submit(*SMALL, *FAKE, "--nodes", 2, "--timeout", seconds(2), script=script)
        self.assertEqual(result.code, 5, result)
        self.assertEqual(result.json()["job"]["state"], "TIMED_OUT")
        self.fleet.nothing_left()
        self.fleet.all_ready()


if __name__ == "__main__":
    unittest.main()
