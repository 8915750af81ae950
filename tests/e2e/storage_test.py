"""The coordinator's disk is full or may not be written."""

import shutil
import subprocess
import unittest

from harness import BIN, LONG, PATIENCE, SMALL, Fleet, wait_for

# Mounts a file system of its own where only this process and its children see it, then becomes the program.
MOUNT = 'mkdir -p "$1" && mount -t tmpfs -o "$2" none "$1" && shift 2 && exec "$@"'


def with_mount(folder, options):
    return ["unshare", "--mount", "sh", "-c", MOUNT, "sh", folder, options]


def can_mount():
    done = subprocess.run(["unshare", "--mount", "sh", "-c", "mount -t tmpfs -o size=1M none /mnt"],
                          capture_output=True, stdin=subprocess.DEVNULL)
    return done.returncode == 0


class SmallDiskFleet(Fleet):
    def __init__(self, nodes, size, **options):
        super().__init__(nodes, **options)
        self.server_prefix = with_mount(self.folder / "server", f"size={size}")

    def filler(self):
        return self.state_of("server") / "filler"

    def fill(self):
        with open(self.filler(), "wb", buffering=0) as file:
            for size in (1 << 16, 1 << 12, 1):
                try:
                    while True:
                        file.write(b"x" * size)
                except OSError:
                    pass

    def complaints(self):
        return [line for line in (self.folder / "server.log").read_text().splitlines()
                if "cannot store" in line and "/server/param.db" in line and "full" in line]


@unittest.skipUnless(shutil.which("unshare") and can_mount(), "needs root, to mount a small file system")
class FullDisk(unittest.TestCase):
    def test_job_whose_results_do_not_fit_waits_for_space_and_ends_well(self):
        with SmallDiskFleet(1, "8M", lease="15s") as fleet:
            done = fleet.submit(*SMALL, "--backend", "fake").json()["job"]["id"]
            job_id = fleet.detach("gemm", "--m", "1:10:+1", "--n", 1, "--k", 1, "--iters", 10, "--warmup", 0,
                                  "--backend", "fake", script={"latency_ns": 10_000_000, "real_time": True})
            wait_for("a stored case", lambda: fleet.job(job_id)["job"]["cases_done"] >= 1)
            fleet.fill()
            wait_for("the complaint in the log", fleet.complaints)
            refused = fleet.ctl("submit", *SMALL, "--backend", "fake", "--detach")
            self.assertEqual(refused.code, 2, refused)
            self.assertIn("/server/param.db", refused.err)
            self.assertIn("full", refused.err)
            wait_for("the worker to end", lambda: not fleet.workers("n1"))
            # The coordinator lives, what is stored can be read, and the job has not ended without its results.
            self.assertIsNone(fleet.server.poll())
            self.assertEqual(fleet.http_status("server", "/healthz"), (200, "ok\n"))
            self.assertEqual(fleet.job(done)["job"]["state"], "SUCCEEDED")
            complaints = len(fleet.complaints())
            wait_for("the agent to try again", lambda: len(fleet.complaints()) > complaints)
            self.assertEqual(fleet.job(job_id)["job"]["state"], "RUNNING")
            fleet.filler().unlink()
            document = fleet.wait_state(job_id, "SUCCEEDED", "FAILED")
            self.assertEqual(document["job"]["state"], "SUCCEEDED", document["job"])
            self.assertEqual([case["metrics"]["time"]["n"] for case in document["cases"]], [10] * 10)
            fleet.nothing_left()
            fleet.all_ready()
            self.assertEqual(fleet.submit(*SMALL, "--backend", "fake").code, 0)

    def cancel(self, fleet, job_id):
        """Takes effect, but is not answered as if it would outlive the coordinator."""
        result = fleet.ctl("job", "cancel", job_id)
        self.assertEqual(result.code, 2, result)
        self.assertIn(f"{job_id} is being ended, but that is not stored", result.err)
        self.assertIn("/server/param.db", result.err)

    def test_running_job_can_be_cancelled_and_its_end_is_kept_until_it_fits(self):
        with SmallDiskFleet(1, "8M", lease="15s") as fleet:
            job_id = fleet.detach(*LONG, "--backend", "fake")
            fleet.wait_state(job_id, "RUNNING")
            fleet.fill()
            wait_for("the complaint in the log", fleet.complaints)
            self.cancel(fleet, job_id)
            fleet.nothing_left()
            fleet.filler().unlink()
            job = fleet.wait_state(job_id, "CANCELLED", "FAILED")["job"]
            self.assertEqual((job["state"], job["reason"]), ("CANCELLED", "cancelled"), job)
            fleet.all_ready()

    def test_waiting_job_can_be_cancelled_and_its_end_is_kept_until_it_fits(self):
        with SmallDiskFleet(1, "8M", lease="15s") as fleet:
            job_id = fleet.detach(*SMALL, "--nodes", 2)  # waits for a second node
            wait_for("its reason", lambda: fleet.job(job_id)["job"]["reason"])
            fleet.fill()
            self.cancel(fleet, job_id)
            wait_for("the complaint in the log", fleet.complaints)
            fleet.filler().unlink()
            job = fleet.wait_state(job_id, "CANCELLED")["job"]
            self.assertEqual(job["reason"], "cancelled before it started")


@unittest.skipUnless(shutil.which("unshare") and can_mount(), "needs root, to mount a file system")
class ReadOnlyDisk(unittest.TestCase):
    def test_coordinator_does_not_start_and_names_the_file(self):
        with Fleet(0) as fleet:
            state = fleet.folder / "readonly"
            done = subprocess.run([*with_mount(state, "ro"), BIN / "param-server", "--listen", "127.0.0.1:0",
                                   "--http", "127.0.0.1:0", "--state", state],
                                  capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=60 * PATIENCE)
            self.assertEqual(done.returncode, 1, done)
            self.assertIn(f"{state}/param.db", done.stderr)
            self.assertIn("Read-only file system", done.stderr)

    def test_agent_does_not_start_and_names_the_folder(self):
        with Fleet(0) as fleet:
            state = fleet.folder / "readonly"
            done = subprocess.run([*with_mount(state, "ro"), BIN / "param-agent", "--server", fleet.address,
                                   "--name", "n1", "--http", "127.0.0.1:0", "--state", state],
                                  capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=60 * PATIENCE)
            self.assertEqual(done.returncode, 1, done)
            self.assertIn(str(state), done.stderr)
            self.assertIn("Read-only file system", done.stderr)


if __name__ == "__main__":
    unittest.main()
