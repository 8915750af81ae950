"""Rank 1 waits in the rendezvous for rank 0, whose agent is stopped, when something happens to it."""

import os
import signal
import unittest

from harness import PATIENCE, SMALL, FleetTest


class RendezvousFaults(FleetTest):
    nodes = 2
    fleet_options = {"lease": "15s"}

    def fails(self, number):
        fleet = self.fleet
        for name in ("n1", "n2"):
            self.assertEqual(fleet.ctl("node", "drain", name).code, 0)
        job_id = fleet.detach(*SMALL, "--nodes", 2, "--backend", "fake+fake", "--deadline",
                              f"rendezvous={2 * PATIENCE:.0f}s")
        with fleet.start_probe("watch", "--job", job_id) as watch:
            self.assertIn("QUEUED", watch.stdout.readline())
            fleet.pause(fleet.agents["n1"].pid)
            try:
                for name in ("n1", "n2"):
                    self.assertEqual(fleet.ctl("node", "resume", name).code, 0)
                self.assertTrue(any('"rendezvous"' in line for line in watch.stdout))
                os.kill(fleet.workers("n2")[0], number)
            finally:
                fleet.agents["n1"].send_signal(signal.SIGCONT)
            document = fleet.wait_state(job_id, "FAILED", "SUCCEEDED")
            watch.communicate(timeout=30 * PATIENCE)
        fleet.nothing_left()
        fleet.all_ready()
        return document

    def test_crash_is_named(self):
        self.assert_failure(self.fails(signal.SIGKILL), node="n2", rank=1, phase="rendezvous", code="ABORTED",
                            cause="SIGKILL")

    def test_hang_ends_at_the_deadline(self):
        self.assert_failure(self.fails(signal.SIGSTOP), node="n2", rank=1, phase="rendezvous",
                            code="DEADLINE_EXCEEDED", cause="rendezvous")


if __name__ == "__main__":
    unittest.main()
