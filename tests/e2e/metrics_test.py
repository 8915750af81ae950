"""The pages a monitoring system reads, and a real Prometheus that reads them."""

import json
import shutil
import signal
import socket
import subprocess
import tempfile
import unittest
import urllib.error
import urllib.parse
import urllib.request

from harness import SMALL, Fleet, FleetTest, wait_for


def free_address():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{probe.getsockname()[1]}"


class Metrics(FleetTest):
    nodes = 1

    def test_both_pages_pass_promtool(self):
        self.assertEqual(self.fleet.submit(*SMALL).code, 0)
        for name in ("server", "n1"):
            with self.subTest(name):
                page = self.fleet.http(name, "/metrics")
                done = subprocess.run(["promtool", "check", "metrics"], input=page, capture_output=True, text=True)
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_health_and_readiness(self):
        for name in ("server", "n1"):
            self.assertIn("ok", self.fleet.http(name, "/healthz"))
            self.assertTrue(self.fleet.http(name, "/readyz"))
        with self.assertRaises(urllib.error.HTTPError):
            self.fleet.http("server", "/nothing")

    def test_counters_follow_the_jobs(self):
        def finished():
            page = self.fleet.http("server", "/metrics")
            return sum(float(line.split()[-1]) for line in page.splitlines()
                       if line.startswith("param_server_jobs_finished_total{") and 'benchmark="gemm"' in line
                       and 'status="succeeded"' in line)

        before = finished()
        self.assertEqual(self.fleet.submit(*SMALL).code, 0)
        wait_for("the counter", lambda: finished() == before + 1)

    def test_a_real_prometheus_scrapes_both(self):
        prometheus = shutil.which("prometheus")
        self.assertIsNotNone(prometheus, "package prometheus is missing")
        targets = []
        for state in ("server", "agent-n1"):
            targets.append((self.fleet.folder / state / "http").read_text().strip())
        folder = self.fleet.folder / "prometheus"
        folder.mkdir()
        (folder / "prometheus.yml").write_text(json.dumps({
            "global": {"scrape_interval": "1s"},
            "scrape_configs": [{"job_name": "param", "static_configs": [{"targets": targets}]}]}))
        listen = free_address()
        process = self.fleet.spawn("prometheus", [
            prometheus, f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data",
            f"--web.listen-address={listen}"])
        self.addCleanup(process.wait)
        self.addCleanup(process.terminate)

        def query(text):
            try:
                url = f"http://{listen}/api/v1/query?query={urllib.parse.quote(text)}"
                with urllib.request.urlopen(url, timeout=5) as answer:
                    return json.load(answer)["data"]["result"]
            except (OSError, ValueError):
                return []

        wait_for("both targets to be up", lambda: sum(r["value"][1] == "1" for r in query("up")) == 2, 60)
        self.assertTrue(query("param_server_build_info"))
        self.assertEqual(query('param_server_agents{state="ready"} or param_server_agents{state="healthy"}')[0]["value"][1], "1")
        self.assertTrue(query("param_agent_coordinator_connected == 1"))


class Readiness(unittest.TestCase):
    def test_agent_is_ready_only_while_it_has_a_coordinator(self):
        fleet = Fleet(0)
        self.addCleanup(fleet.close)
        fleet.address = free_address()
        fleet.start_agent("n1")
        not_connected = (503, f"not connected to {fleet.address}\n")
        self.assertEqual(fleet.http_status("n1", "/readyz"), not_connected)
        self.assertEqual(fleet.http_status("n1", "/healthz"), (200, "ok\n"))
        fleet.start_server()
        wait_for("n1 to be ready", lambda: fleet.http_status("n1", "/readyz") == (200, "ready\n"))
        fleet.kill(fleet.server)
        wait_for("n1 not to be ready", lambda: fleet.http_status("n1", "/readyz") == not_connected)
        self.assertEqual(fleet.http_status("n1", "/healthz"), (200, "ok\n"))

    def test_server_that_stops_is_not_ready(self):
        with Fleet(1) as fleet:
            job_id = fleet.detach(*SMALL, "--nodes", 2)
            # A reader that does not go away keeps the server for its grace of one second.
            watch = fleet.start_probe("watch", "--job", job_id)
            self.addCleanup(watch.communicate)
            self.addCleanup(watch.kill)
            watch.stdout.readline()
            self.assertEqual(fleet.http_status("server", "/readyz"), (200, "ready\n"))
            fleet.server.send_signal(signal.SIGTERM)
            wait_for("the server not to be ready",
                     lambda: fleet.http_status("server", "/readyz") == (503, "starting or stopping\n"), 5)
            self.assertEqual(fleet.http_status("server", "/healthz"), (200, "ok\n"))
            self.assertEqual(fleet.server.wait(10), 0)


if __name__ == "__main__":
    unittest.main()
