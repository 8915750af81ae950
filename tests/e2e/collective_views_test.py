"""What paramctl shows of collectives: other tools' tables, plots, reports, comparisons, imports. On the fake
backend: the numbers mean nothing, their way from the ranks to the eye does."""

import json
import pathlib
import re
import unittest

from harness import FleetTest

SWEEP = ["collective", "--nodes", 2, "--backend", "fake", "--size", "8:1K:x2", "--iters", 5]


class CollectiveViews(FleetTest):
    def file(self, name):
        return self.fleet.folder / name

    def sweep(self, name):
        result = self.fleet.submit(*SWEEP)
        self.assertEqual(result.code, 0, result)
        self.file(name).write_text(result.out)
        return result.json()

    def test_nccl_tests_table_of_a_job_comes_back_by_import(self):
        shown = self.fleet.ctl("submit", *SWEEP, "--convention", "nccl-tests")
        self.assertEqual(shown.code, 0, shown)
        rows = [line.split() for line in shown.out.splitlines() if re.match(r"\s*\d", line)]
        self.assertEqual([row[0] for row in rows], [str(8 << i) for i in range(8)])
        self.assertTrue(all(len(row) == 13 for row in rows), shown)
        self.file("nccl.txt").write_text(shown.out)
        imported = self.fleet.ctl("-o", "json", "result", "import", self.file("nccl.txt"), "--name", "again")
        self.assertEqual(imported.code, 0, imported)
        document = imported.json()
        self.assertEqual(document["job"]["source"], "import:nccl-tests")
        self.assertEqual(document["job"]["state"], "SUCCEEDED")
        self.assertEqual(document["job"]["nodes"], ["n1", "n2"])
        self.assertEqual(len(document["cases"]), 8)
        self.assertAlmostEqual(document["cases"][0]["metrics"]["time"]["p50"], float(rows[0][5]) * 1e-6, delta=1e-12)
        listed = self.fleet.ctl("-o", "json", "result", "list", "--case", document["cases"][0]["case"]).json()
        self.assertIn(document["job"]["id"], [row["job"]["id"] for row in listed["results"]])

    def test_what_a_table_cannot_say_is_refused_at_once(self):
        refused = self.fleet.ctl("submit", "collective", "--nodes", 2, "--backend", "fake", "--op", "barrier",
                                 "--convention", "nccl-tests")
        self.assertEqual(refused.code, 2, refused)
        self.assertIn("it has no operation", refused.err)

    def test_osu_and_param_tables_have_a_row_per_size(self):
        job_id = self.sweep("osu.json")["job"]["id"]
        osu = self.fleet.ctl("job", "results", job_id, "--convention", "osu", "-o", "wide")
        self.assertEqual(len(re.findall(r"^\d+ +[\d.]+ +[\d.]+ +[\d.]+ +5$", osu.out, re.M)), 8, osu)
        param = self.fleet.ctl("job", "results", job_id, "--convention", "param")
        self.assertEqual(len(re.findall(r"^\tCOMMS-RES-all_reduce-float32 +\d", param.out, re.M)), 8, param)

    def test_a_job_compared_with_itself_is_the_same(self):
        document = self.sweep("self.json")
        compared = self.fleet.ctl("-o", "json", "result", "compare", self.file("self.json"), document["job"]["id"],
                                  "--fail-on", 0)
        self.assertEqual(compared.code, 0, compared)
        cases = compared.json()["cases"]
        self.assertEqual(len(cases), 8)
        self.assertEqual({case["ratio"] for case in cases}, {1})

    def test_a_slower_file_hits_the_threshold(self):
        document = self.sweep("fast.json")
        for case in document["cases"]:
            for key in ("p50", "min", "max", "mean"):
                case["metrics"]["time"][key] *= 1000
            case["metrics"]["time"]["ci95"] = [value * 1000 for value in case["metrics"]["time"]["ci95"]]
        self.file("slow.json").write_text(json.dumps(document))
        compared = self.fleet.ctl("result", "compare", self.file("fast.json"), self.file("slow.json"), "--plot",
                                  "--fail-on", 10)
        self.assertEqual(compared.code, 4, compared)
        self.assertIn("time p50 over size", compared.out)
        self.assertIn("A all_reduce f32", compared.out)

    def test_report_is_one_file(self):
        job_id = self.sweep("report.json")["job"]["id"]
        path = self.file("report.html")
        done = self.fleet.ctl("report", job_id, "--html", path)
        self.assertEqual(done.code, 0, done)
        html = pathlib.Path(path).read_text()
        self.assertIn("<svg", html)
        self.assertIn(job_id, html)
        self.assertEqual(re.findall(r"(?:src|href)=", html), [])
        self.assertEqual([p.name for p in self.fleet.folder.glob("report.html*")], ["report.html"])

    def test_plot_without_a_terminal_is_ascii(self):
        job_id = self.sweep("plot.json")["job"]["id"]
        plot = self.fleet.ctl("job", "results", job_id, "--plot")
        self.assertEqual(plot.code, 0, plot)
        self.assertIn("bus bandwidth over size", plot.out)
        self.assertTrue(plot.out.isascii(), plot.out)


if __name__ == "__main__":
    unittest.main()
