"""Collectives and messages between pairs, over every communication backend of this machine."""

import unittest

from harness import FleetTest

QUICK = ("--iters", 5, "--warmup", 1)
OPS = ("all_reduce,all_gather,all_gather_v,reduce_scatter,reduce_scatter_v,all_to_all,all_to_allv,"
       "broadcast,reduce,gather,scatter,incast,multicast,barrier")


class Collective(FleetTest):
    nodes = 4

    def backends(self):
        usable = {}
        for node in self.fleet.ctl("node", "show", "n1", "-o", "json").json()["node"]["inventory"]["backends"]:
            if node["usable"] and "comm" in node["tables"]:
                usable[node["name"]] = node
        return sorted(usable)

    def collective(self, *args, **kwargs):
        return self.fleet.submit("collective", *args, *QUICK, **kwargs)

    def test_every_operation_is_right_on_every_backend(self):
        for backend in self.backends():
            with self.subTest(backend):
                result = self.collective("--nodes", 3, "--backend", backend, "--op", OPS, "--size", "96,60000")
                self.assertEqual(result.code, 0, result)
                cases = result.json()["cases"]
                self.assertEqual(len(cases), 28)
                barriers = [c for c in cases if c["params"]["op"] == "barrier"]
                self.assertEqual({c["status"] for c in barriers}, {"SKIPPED"})  # they have no size
                cases = [c for c in cases if c["params"]["op"] != "barrier"]
                self.assertEqual({c["status"] for c in cases}, {"PASSED"}, [c["reason"] for c in cases])
                for case in cases:
                    self.assertEqual(case["metrics"]["time"]["n"], 5)  # the slowest rank's, not all ranks'
                    self.assertGreater(case["metrics"]["busbw"]["p50"], 0)
                barrier = self.collective("--nodes", 3, "--backend", backend, "--op", "barrier")
                self.assertEqual(barrier.code, 0, barrier)
                self.assertNotIn("busbw", barrier.json()["cases"][0]["metrics"])

    def test_chosen_peers(self):
        for backend in self.backends():
            with self.subTest(backend):
                result = self.collective("--nodes", 4, "--backend", backend, "--op", "incast,multicast",
                                         "--size", "4K", "--peers", "1+3", "--root", 2)
                self.assertEqual(result.code, 0, result)
                for case in result.json()["cases"]:
                    self.assertEqual(case["status"], "PASSED", case)
                    self.assertEqual(case["metrics"]["bytes_total"]["p50"], 8192)

    def test_rates_follow_from_the_time(self):
        result = self.collective("--nodes", 4, "--op", "all_reduce,all_gather,reduce", "--size", "64K")
        self.assertEqual(result.code, 0, result)
        for case in result.json()["cases"]:
            metrics = case["metrics"]
            factor = {"all_reduce": 1.5, "all_gather": 0.75, "reduce": 1}[case["params"]["op"]]
            self.assertAlmostEqual(metrics["algbw"]["p50"] * metrics["time"]["p50"] / 65536, 1, places=6)
            self.assertAlmostEqual(metrics["busbw"]["p50"] / metrics["algbw"]["p50"], factor, places=6)
            self.assertEqual(metrics["bytes_total"]["p50"], 65536)

    def test_a_comm_backend_is_chosen_and_recorded(self):
        result = self.collective("--nodes", 2)
        self.assertEqual(result.code, 0, result)
        self.assertRegex(result.json()["job"]["backend"], r"^cpu\+")

    def test_every_type_and_reduction(self):
        for backend in self.backends():
            with self.subTest(backend):
                result = self.collective(
                    "--nodes", 2, "--backend", backend, "--op", "all_reduce,reduce_scatter", "--size", "4000",
                    "--dtype", "i8,u8,i32,i64,f16,bf16,f32,f64", "--redop", "sum,prod,min,max,avg",
                    "--in-place=false,true")
                self.assertEqual(result.code, 0, result)
                cases = result.json()["cases"]
                self.assertEqual(len(cases), 160)
                self.assertEqual({c["status"] for c in cases}, {"PASSED"}, [c["reason"] for c in cases])

    def test_uneven_shares(self):
        result = self.collective(
            "--nodes", 4, "--op", "all_to_allv,all_gather_v,reduce_scatter_v", "--size", "16,40000",
            "--split", "even,zipf,hot,zero_rows,zero_next")
        self.assertEqual(result.code, 0, result)
        self.assertEqual({c["status"] for c in result.json()["cases"]}, {"PASSED"})

    def test_operations_in_flight(self):
        result = self.collective("--nodes", 2, "--op", "all_reduce", "--size", "4K", "--mode", "pipelined",
                                 "--inflight", 4, "--buffers", 6)
        case = result.json()["cases"][0]
        self.assertIn(case["status"], ("PASSED", "SKIPPED"), case)

    def test_injected_flips_are_wrong(self):
        for backend in self.backends():
            for op in OPS.split(","):
                if op == "barrier":
                    continue
                with self.subTest(backend=backend, op=op):
                    rank = 0 if op in ("reduce", "gather", "incast") else 1
                    result = self.collective("--nodes", 2, "--backend", backend, "--op", op, "--size", "1K",
                                             "--inject", f"flip@{rank}:17")
                    self.assertEqual(result.code, 1, result)
                    case = result.json()["cases"][0]
                    self.assertEqual(case["status"], "WRONG", case)
                    self.assertIn(f"rank {rank}, {op}: index 17: expected", case["reason"])

    def test_small_sizes_are_skipped_with_the_least_that_would_do(self):
        result = self.collective("--nodes", 3, "--op", "all_to_all", "--size", "8,64")
        self.assertEqual(result.code, 0, result)
        small, good = result.json()["cases"]
        self.assertEqual(small["status"], "SKIPPED")
        self.assertIn("needs 12 B at least", small["reason"])
        self.assertEqual(good["status"], "PASSED")
        self.assertEqual(good["metrics"]["bytes_total"]["p50"], 60)

    def test_what_cannot_be_fails_its_case_and_says_why(self):
        for args, words in (
            (("--nodes", 2, "--root", 2, "--op", "reduce"), "--root 2: the ranks are 0 to 1"),
            (("--nodes", 2, "--size", 7), "no whole number of elements of 4 B"),
            (("--nodes", 1,), "needs two ranks that communicate, this job has one"),
            (("--nodes", 2, "--op", "incast", "--peers", "0:5"), '"0:5" is no rank'),
            (("--nodes", 2, "--inflight", 4), "needs --mode pipelined"),
        ):
            with self.subTest(args):
                result = self.collective(*args)
                self.assertIn(result.code, (1, 2), result)
                text = result.out + result.err
                self.assertIn(words, text.replace('\\"', '"'))

    def test_a_parameter_that_makes_no_difference_is_skipped(self):
        result = self.collective("--nodes", 2, "--op", "broadcast,all_reduce", "--in-place=false,true")
        statuses = [(c["params"]["op"], c["params"]["in_place"], c["status"]) for c in result.json()["cases"]]
        self.assertIn(("broadcast", True, "SKIPPED"), statuses)
        self.assertEqual(sum(s[2] == "PASSED" for s in statuses), 3)

    def test_a_backend_that_does_not_fit_the_device_is_refused(self):
        result = self.collective("--nodes", 2, "--backend", "cpu+nosuch")
        self.assertEqual(result.code, 2, result)
        self.assertIn("nosuch", result.err)


class PointToPoint(FleetTest):
    nodes = 4

    def backends(self):
        shown = self.fleet.ctl("node", "show", "n1", "-o", "json").json()["node"]["inventory"]["backends"]
        # The fake backend's exchange takes all ranks at once.
        return sorted(b["name"] for b in shown if b["usable"] and "comm" in b["tables"] and b["name"] != "fake")

    def p2p(self, *args):
        return self.fleet.submit("p2p", *args, *QUICK)

    def test_every_test_of_every_pattern(self):
        for backend in self.backends():
            for pattern in ("one2one", "pairwise"):
                with self.subTest(backend=backend, pattern=pattern):
                    result = self.p2p("--nodes", 4, "--backend", backend, "--pattern", pattern,
                                      "--test", "ping,ping_pong,uni,bi", "--size", "1,4K,1M", "--window", 8)
                    self.assertEqual(result.code, 0, result)
                    cases = result.json()["cases"]
                    self.assertEqual({c["status"] for c in cases}, {"PASSED"}, [c["reason"] for c in cases])
                    pairs = 1 if pattern == "one2one" else 2
                    for case in cases:
                        with_time = [r for r in case["ranks"] if "time" in r["metrics"]]
                        ends = 2 if case["params"]["test"] == "bi" else 1  # only who can tell
                        self.assertEqual(len(with_time), pairs * ends)

    def test_the_matrix_names_every_pair(self):
        for backend in self.backends():
            with self.subTest(backend):
                result = self.p2p("--nodes", 3, "--backend", backend, "--pattern", "matrix", "--size", "1K")
                self.assertEqual(result.code, 0, result)
                found = {}
                for entry in result.json()["cases"][0]["breakdown"]:
                    if entry["metric"] == "pair_latency":
                        found[(entry["labels"]["src"], entry["labels"]["dst"])] = entry["p50"]
                self.assertEqual(len(found), 6)
                self.assertTrue(all(value > 0 for value in found.values()), found)

    def test_injected_flips_are_wrong(self):
        for backend in self.backends():
            for test in ("ping", "ping_pong", "uni", "bi"):
                with self.subTest(backend=backend, test=test):
                    result = self.p2p("--nodes", 2, "--backend", backend, "--test", test, "--size", "1K",
                                      "--inject", "flip@1:17")
                    case = result.json()["cases"][0]
                    self.assertEqual(case["status"], "WRONG", case)
                    self.assertIn("rank 1, message from rank 0: index 17", case["reason"])

    def test_bad_pairs_are_named(self):
        for args, words in (
            (("--nodes", 1), "needs two ranks that communicate"),
            (("--nodes", 2, "--dst", "5"), "--dst"),
            (("--nodes", 4, "--pattern", "pairwise", "--src", "0:1", "--dst", "1:2"), "rank 1 is in two pairs"),
            (("--nodes", 4, "--pattern", "pairwise", "--src", "0:1", "--dst", "2"), "--src names 2 ranks, --dst 1"),
        ):
            with self.subTest(args):
                result = self.p2p(*args)
                self.assertIn(result.code, (1, 2), result)
                self.assertIn(words, result.out + result.err)


if __name__ == "__main__":
    unittest.main()
