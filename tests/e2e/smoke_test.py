"""The shortest way through all four programs: a job that ends well, one that is wrong, three faults."""

import unittest

from faults_test import fault
from harness import LONG, SMALL, FleetTest


class Smoke(FleetTest):
    nodes = 2

    def test_gemm_ends_well_on_the_cpu(self):
        result = self.fleet.submit(*SMALL, "--nodes", 2, "--backend", "cpu")
        self.assertEqual(result.code, 0, result)

    def test_injected_flip_is_wrong(self):
        result = self.fleet.submit(*SMALL, "--backend", "fake", "--inject", "flip@0:3")
        self.assertEqual(result.json()["cases"][0]["status"], "WRONG", result)

    def test_crash_garbage_and_silent_exit_are_named(self):
        # Under AddressSanitizer a crash is an exit, so the words differ.
        for kind, cause in (("crash", "worker"), ("garbage", "worker sent"), ("exit", "exited with")):
            with self.subTest(kind):
                result = self.fleet.submit(*SMALL, "--nodes", 2, "--backend", "fake", script=fault("timed", kind))
                self.assertEqual(result.code, 1, result)
                self.assert_failure(result.json(), node="n2", rank=1, cause=cause)
        self.fleet.nothing_left()

    def test_cancel_ends_a_running_job_with_exit_code_five(self):
        job_id = self.fleet.detach(*LONG, "--nodes", 2)
        self.fleet.wait_state(job_id, "RUNNING")
        self.assertEqual(self.fleet.ctl("job", "cancel", job_id).code, 0)
        self.fleet.wait_state(job_id, "CANCELLED")
        self.assertEqual(self.fleet.ctl("job", "watch", job_id).code, 5)
        self.fleet.nothing_left()


if __name__ == "__main__":
    unittest.main()
