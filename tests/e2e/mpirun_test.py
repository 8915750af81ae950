"""Jobs whose ranks an MPI library's own launcher starts, without ssh: four agents of one machine."""

import os
import pathlib
import shutil
import signal
import unittest

from harness import LONG, SMALL, Fleet, FleetTest, command_of, descendants, program_of, wait_for

MPI = ["--backend", "mpi"]


def processes_of(job_id):
    """Everything that was started for a job, on whatever node, by the variable that all of it has."""
    found = []
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            environment = pathlib.Path(f"/proc/{entry}/environ").read_bytes()
        except OSError:
            continue
        if f"PARAM_WORKER_ID={job_id}/".encode() in environment:
            found.append(int(entry))
    return found


def ranks_of(fleet, name):
    """Workers that are ranks: not the helpers that stand for them in the launcher's eyes."""
    return [p for p in fleet.workers(name) if b"--launch" not in command_of(p)]


def program(fleet, name, wanted):
    return [p for p in descendants(fleet.agents[name].pid) if program_of(p) == wanted]


class MpirunTest(FleetTest):
    nodes = 4

    def begin(self):
        """A job of four ranks that runs until it is stopped, all of them at work."""
        job_id = self.fleet.detach(*LONG, "--nodes", 4, *MPI)
        self.fleet.wait_state(job_id, "RUNNING")
        wait_for("the first timed iteration",
                 lambda: self.fleet.job(job_id)["job"]["timeline"]["first_timed"])
        return job_id

    def ended(self, job_id, *states):
        document = self.fleet.wait_state(job_id, *states)
        self.fleet.nothing_left()
        wait_for("all processes to be gone", lambda: not processes_of(job_id), 10)
        return document

    def revive(self, name):
        self.fleet.start_agent(name)
        self.fleet.wait_ready(self.nodes)

    def test_four_nodes_run_it(self):
        result = self.fleet.submit(*SMALL, "--nodes", 4, *MPI)
        self.assertEqual(result.code, 0, result)
        job = result.json()["job"]
        self.assertEqual(job["state"], "SUCCEEDED")
        self.assertEqual(job["ranks"], 4)
        self.assertEqual(job["backend"], "cpu+mpi")
        times = [job["timeline"][k] for k in ("submitted", "placed", "spawned", "rendezvous",
                                              "comm_init", "first_timed", "finished")]
        self.assertEqual(times, sorted(times))
        self.ended(job["id"], "SUCCEEDED")

    def test_several_ranks_per_node(self):
        result = self.fleet.submit(*SMALL, "--nodes", 2, "--ranks-per-node", 2, *MPI)
        self.assertEqual(result.code, 0, result)
        self.assertEqual(result.json()["job"]["ranks"], 4)

    def test_one_node(self):
        self.assertEqual(self.fleet.submit(*SMALL, *MPI).code, 0)

    def test_a_killed_rank_is_named(self):
        job_id = self.begin()
        os.kill(ranks_of(self.fleet, "n3")[0], signal.SIGKILL)
        self.assert_failure(self.ended(job_id, "FAILED"), node="n3", rank=2, phase="timed",
                            cause="worker killed by SIGKILL")

    def test_a_killed_agent_is_named(self):
        job_id = self.begin()
        self.fleet.kill(self.fleet.agents["n2"])
        self.assert_failure(self.ended(job_id, "FAILED"), node="n2", rank=1, cause="agent lost")
        self.revive("n2")

    def test_the_heads_agent_is_no_exception(self):
        job_id = self.begin()
        self.fleet.kill(self.fleet.agents["n1"])
        self.assert_failure(self.ended(job_id, "FAILED"), node="n1", rank=0, cause="agent lost")
        self.revive("n1")

    def test_a_killed_mpirun_is_named(self):
        job_id = self.begin()
        os.kill(program(self.fleet, "n1", "orterun")[0], signal.SIGKILL)
        self.assert_failure(self.ended(job_id, "FAILED"), node="n1", rank=0, phase="timed",
                            cause="mpirun killed by SIGKILL")

    def test_a_killed_daemon_is_named(self):
        job_id = self.begin()
        os.kill(program(self.fleet, "n4", "orted")[0], signal.SIGKILL)
        self.assert_failure(self.ended(job_id, "FAILED"), node="n4", rank=3, phase="timed",
                            cause="orted killed by SIGKILL")

    def test_an_interface_that_is_asked_for(self):
        result = self.fleet.submit(*SMALL, "--nodes", 2, *MPI, "--interface", "127.0.0.0/8")
        self.assertEqual(result.code, 0, result)
        facts = result.json()["environment"][1]["facts"]
        self.assertEqual(facts["env.OMPI_MCA_btl_tcp_if_include"], "127.0.0.0/8")
        result = self.fleet.submit(*SMALL, "--nodes", 2, *MPI, "--interface", "nosuch0")
        self.assertEqual(result.code, 1, result)
        self.assert_failure(result.json(), node="n1", phase="spawn", cause="Value given: nosuch0")
        self.ended(result.json()["job"]["id"], "FAILED")

    def test_a_cancel_while_it_starts(self):
        job_id = self.fleet.detach(*LONG, "--nodes", 4, *MPI)
        self.fleet.ctl("job", "cancel", job_id)
        self.ended(job_id, "CANCELLED")

    def test_a_spawn_that_takes_too_long(self):
        result = self.fleet.submit(*SMALL, "--nodes", 2, *MPI, "--deadline", "spawn=1ms")
        self.assert_failure(result.json(), phase="spawn", code="DEADLINE_EXCEEDED",
                            cause="the worker did not connect")
        self.ended(result.json()["job"]["id"], "FAILED")

    def test_cancel(self):
        job_id = self.begin()
        self.fleet.ctl("job", "cancel", job_id)
        self.ended(job_id, "CANCELLED")

    def test_a_coordinator_that_comes_back_finds_the_job(self):
        job_id = self.begin()
        self.fleet.kill(self.fleet.server)
        self.fleet.start_server()
        self.fleet.wait_state(job_id, "RUNNING")
        self.fleet.ctl("job", "cancel", job_id)
        self.ended(job_id, "CANCELLED")
        self.fleet.wait_ready(self.nodes)

    def test_the_next_job_runs_after_all_that(self):
        for _ in range(2):
            self.assertEqual(self.fleet.submit(*SMALL, "--nodes", 4, *MPI).code, 0)


class MissingTest(unittest.TestCase):
    """Nodes that lack a part of the MPI library."""

    def run_without(self, program_name, node):
        with Fleet(0) as fleet:
            folder = fleet.folder / "mpi"
            folder.mkdir()
            for name in {"mpirun", "orted"} - {program_name}:
                os.symlink(shutil.which(name), folder / name)
            for name in ("n1", "n2"):
                fleet.start_agent(name, extra=("--mpi-bin", folder) if name == node else ())
            fleet.wait_ready(2)
            result = fleet.submit(*SMALL, "--nodes", 2, *MPI)
            self.assertEqual(result.code, 1, result)
            fleet.nothing_left()
            return result.json()["job"]["failure"]

    def test_orted(self):
        failure = self.run_without("orted", "n2")
        self.assertEqual((failure["node"], failure["rank"], failure["phase"]), ("n2", 1, "spawn"))
        self.assertIn("orted is not in", failure["cause"])

    def test_mpirun(self):
        failure = self.run_without("mpirun", "n1")
        self.assertEqual((failure["node"], failure["rank"], failure["phase"]), ("n1", 0, "spawn"))
        self.assertIn("mpirun is not in", failure["cause"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
