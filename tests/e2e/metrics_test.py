"""The pages a monitoring system reads, and a real Prometheus that reads them."""

import json
import shutil
import subprocess
import tempfile
import unittest
import urllib.error
import urllib.parse
import urllib.request

from harness import SMALL, Fleet, FleetTest, wait_for


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
        listen = "127.0.0.1:0"
        import socket
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            listen = f"127.0.0.1:{probe.getsockname()[1]}"
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


if __name__ == "__main__":
    unittest.main()
