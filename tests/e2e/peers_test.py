"""Peers that are not ours: an agent of another protocol, a watcher that does not read."""

import json
import re
import subprocess
import unittest

from harness import BIN, PATIENCE, SMALL, Fleet

CASES = 1000


class OtherAgents(unittest.TestCase):
    def test_agent_of_another_protocol_is_refused_and_the_true_one_goes_on(self):
        with Fleet(1) as fleet:
            *lines, end = fleet.probe("register", "--name", "stranger", "--protocol", 99)
            self.assertEqual(lines, [{"registered": False}])
            self.assertEqual(end["code"], "FAILED_PRECONDITION", end)
            for part in ("stranger", "9.9.9", "speaks protocol 99", "install the same version"):
                self.assertIn(part, end["message"])
            refusals = [line for line in (fleet.folder / "server.log").read_text().splitlines()
                        if "agent refused" in line]
            self.assertEqual(len(refusals), 1, refusals)
            self.assertIn("stranger", refusals[0])
            self.assertIn("protocol 99", refusals[0])
            self.assertEqual(fleet.node_states(), {"n1": "ready"})
            self.assertEqual(fleet.submit(*SMALL).code, 0)
            # It was the protocol and nothing else: with the coordinator's own, the same agent is taken in.
            ours = re.search(r"this coordinator \(version [^)]*\) speaks (\d+)", end["message"]).group(1)
            *lines, end = fleet.probe("register", "--name", "stranger", "--protocol", ours)
            self.assertEqual(lines, [{"registered": True}], end)
            self.assertIn("stranger", fleet.node_states())


class SlowWatcher(unittest.TestCase):
    def test_is_dropped_with_a_clear_status_and_never_slows_the_job(self):
        with Fleet(1) as fleet:
            self.assertEqual(fleet.ctl("node", "drain", "n1").code, 0)
            # Long enough for one write to the slow one to have waited for all of the coordinator's patience.
            job_id = fleet.detach("gemm", "--m", f"1:{CASES}:+1", "--n", 1, "--k", 1, "--iters", 1, "--warmup", 0,
                                  "--backend", "fake", script={"latency_ns": 4_000_000, "real_time": True})
            slow = fleet.start_probe("watch", "--job", job_id, "--pause-after", 1)
            self.addCleanup(slow.kill)
            self.assertEqual(json.loads(slow.stdout.readline())["state"], "QUEUED")
            rows = fleet.folder / "rows"
            with open(rows, "w") as out:
                diligent = subprocess.Popen([BIN / "paramctl", "--server", fleet.address, "-o", "jsonl", "job",
                                             "watch", job_id], stdin=subprocess.DEVNULL, stdout=out)
            self.assertEqual(fleet.ctl("node", "resume", "n1").code, 0)
            # The job ends, and another one runs, while the slow one still does not read.
            fleet.wait_state(job_id, "SUCCEEDED", "FAILED")
            self.assertEqual(diligent.wait(30 * PATIENCE), 0)
            self.assertEqual(fleet.submit(*SMALL).code, 0)
            self.assertIsNone(slow.poll())
            out, _ = slow.communicate(timeout=30 * PATIENCE)  # its input ends: it reads on
            *events, end = [json.loads(line) for line in out.splitlines()]
            self.assertEqual(end["code"], "RESOURCE_EXHAUSTED", end)
            self.assertIn("reader too slow", end["message"])
            self.assertIn("after_seq", end["message"])
            # Nothing is lost: it goes on from where it was dropped, each case once.
            *rest, end = fleet.probe("watch", "--job", job_id, "--after-seq", max(e["seq"] for e in events))
            self.assertEqual(end["code"], "OK", end)
            early = [e["case"] for e in events if "case" in e]
            late = [e["case"] for e in rest if "case" in e]
            self.assertGreater(len(late), 0)
            self.assertEqual(early + late, list(range(CASES)))
            read = [json.loads(line) for line in rows.read_text().splitlines()]
            self.assertEqual(sum("case" in row for row in read), CASES)
            self.assertEqual(read[-1]["job"]["state"], "SUCCEEDED")


if __name__ == "__main__":
    unittest.main()
