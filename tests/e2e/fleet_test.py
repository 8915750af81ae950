"""paramctl up and down: a fleet on this machine that leaves nothing behind."""

import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

from harness import BIN, PATIENCE, SMALL, alive


class UpAndDown(unittest.TestCase):
    def setUp(self):
        self.state = pathlib.Path(tempfile.mkdtemp(prefix="param-up-"))
        self.addCleanup(shutil.rmtree, self.state, True)
        self.addCleanup(self.ctl, "down")

    def ctl(self, *args):
        environment = {**os.environ, "PARAM_STATE": str(self.state)}
        environment.pop("PARAM_SERVER", None)
        return subprocess.run([BIN / "paramctl", *map(str, args)], capture_output=True, text=True, env=environment,
                              timeout=90 * PATIENCE)

    def test_up_submit_doctor_down(self):
        up = self.ctl("up", "--nodes", 2)
        self.assertEqual(up.returncode, 0, up)
        pids = [p["pid"] for p in json.loads((self.state / "fleet.json").read_text())["processes"]]
        self.assertEqual(len(pids), 3)
        self.assertEqual(self.ctl("submit", *SMALL, "--nodes", 2).returncode, 0)
        doctor = self.ctl("doctor")
        self.assertEqual(doctor.returncode, 0, doctor)
        again = self.ctl("up", "--nodes", 3)
        self.assertEqual(again.returncode, 2, again)
        self.assertIn("down", again.stderr)
        down = self.ctl("down")
        self.assertEqual(down.returncode, 0, down)
        self.assertFalse([p for p in pids if alive(p)])
        self.assertEqual(self.ctl("down").returncode, 0)  # again does no harm

    def test_two_fleets_side_by_side_do_not_meet(self):
        self.assertEqual(self.ctl("up", "--nodes", 1).returncode, 0)
        other = UpAndDown("test_up_submit_doctor_down")
        other.setUp()
        try:
            self.assertEqual(other.ctl("up", "--nodes", 1).returncode, 0)
            for one in (self, other):
                nodes = json.loads(one.ctl("-o", "json", "node", "list").stdout)["nodes"]
                self.assertEqual([n["name"] for n in nodes], ["n1"])
        finally:
            other.doCleanups()


if __name__ == "__main__":
    unittest.main()
