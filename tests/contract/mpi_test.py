#!/usr/bin/env python3
"""The mpi backend under the real mpirun: mpi_test.py PROGRAM [unittest's arguments]

PROGRAM is mpi_ranks, which plays one rank of a scenario. What works is a test of its own for each
number of ranks (see CMakeLists.txt); here are the ways in which it goes wrong.
"""
import json
import os
import subprocess
import sys
import time
import unittest

PROGRAM = sys.argv.pop(1)
MPIRUN = [
    "mpirun", "--oversubscribe", "--bind-to", "none", "--mca", "pml", "ob1",
    "--mca", "btl", "self,vader,tcp", "--mca", "mpi_yield_when_idle", "1",
]
# What a hang would take; what ends does so in less than two seconds, on a busy machine too.
HANG_S = 30


def run(ranks, scenario, **environment):
    """Exit status, output of all ranks, seconds. `ranks` 0: without mpirun."""
    command = [PROGRAM, scenario] if ranks == 0 else [*MPIRUN, "-n", str(ranks), PROGRAM, scenario]
    variables = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1",
                 "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", **environment}
    begin = time.monotonic()
    done = subprocess.run(command, env=variables, stdin=subprocess.DEVNULL, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=HANG_S)
    return done.returncode, done.stdout, time.monotonic() - begin


class MpiTest(unittest.TestCase):
    def test_probe_says_usable_without_mpirun_and_without_opening_mpi(self):
        code, text, _ = run(0, "probe")
        self.assertEqual(code, 0, text)
        probed = json.loads(text)
        self.assertTrue(probed["usable"], probed)
        self.assertEqual((probed["name"], probed["tables"]), ("mpi", ["comm"]))
        self.assertRegex(probed["describe"]["libraries"]["mpi"], r"MPI \d")

    def test_probe_misses_mpirun(self):
        code, text, _ = run(0, "probe", PATH="/nonexistent")
        self.assertEqual(code, 0, text)
        probed = json.loads(text)
        self.assertTrue(probed["loadable"], probed)
        self.assertFalse(probed["usable"], probed)
        self.assertIn("no mpirun in PATH", probed["reason"])

    def test_a_world_of_another_size_is_named(self):
        code, text, _ = run(2, "wrong_world")
        self.assertIn("FAILED_PRECONDITION: MPI says rank 0 of 2, the job says rank 0 of 3", text)
        self.assertIn("MPI says rank 1 of 2, the job says rank 1 of 3", text)

    def test_a_process_that_mpirun_did_not_start_is_named(self):
        code, text, _ = run(0, "wrong_world")
        self.assertEqual(code, 0, text)
        self.assertIn("FAILED_PRECONDITION: MPI says rank 0 of 1, the job says rank 0 of 2", text)
        self.assertIn("not started by the mpirun", text)

    def test_a_missing_rank_is_named_at_the_deadline(self):
        _, text, _ = run(3, "missing")
        self.assertEqual(text.count("DEADLINE_EXCEEDED: nothing from rank 2 of 3 within 0.300 s"),
                         2, text)
        self.assertIn("closed", text)

    def test_a_cancelled_job_ends_the_bring_up(self):
        _, text, _ = run(2, "cancel")
        self.assertIn("CANCELLED: the job was cancelled while waiting for rank 1 of 2", text)

    def test_a_rank_that_exits_inside_a_collective_ends_the_others(self):
        code, text, seconds = run(3, "exits")
        self.assertEqual(code, 7, text)
        self.assertEqual(text.count("waiting"), 2, text)
        self.assertNotIn("came back", text)
        self.assertLess(seconds, 10)

    def test_an_abort_ends_a_blocking_call_with_the_process(self):
        code, text, seconds = run(2, "abort")
        self.assertEqual(code, 3, text)
        self.assertIn("aborted while a call of MPI waits for a peer", text)
        self.assertNotIn("ended:", text)
        self.assertLess(seconds, 10)

    def test_an_abort_ends_a_request_with_an_error(self):
        _, text, seconds = run(2, "abort_request")
        for what in ("ended", "next", "asynchronous"):
            self.assertIn(f"{what}: ABORTED: the communicator was aborted", text)
        self.assertIn("finalized: 0", text)
        self.assertLess(seconds, 10)


if __name__ == "__main__":
    unittest.main(verbosity=2)
