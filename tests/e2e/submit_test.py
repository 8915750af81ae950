"""The main job, and everything that is refused before it starts."""

import json
import signal
import subprocess
import unittest

from harness import BIN, SMALL, LONG, Fleet, FleetTest, wait_for


class Submit(FleetTest):
    nodes = 4

    def test_gemm_on_four_nodes_ends_well(self):
        result = self.fleet.submit(*SMALL, "--nodes", 4, "--backend", "cpu")
        self.assertEqual(result.code, 0, result)
        document = result.json()
        job, case = document["job"], document["cases"][0]
        self.assertEqual(job["state"], "SUCCEEDED")
        self.assertEqual(job["nodes"], ["n1", "n2", "n3", "n4"])
        self.assertEqual(job["ranks"], 4)
        self.assertEqual(job["backend"], "cpu")
        self.assertTrue(job["oversubscribed"])
        self.assertIsNone(job["failure"])
        order = ["submitted", "placed", "spawned", "rendezvous", "comm_init", "warmup", "first_timed", "finished"]
        times = [job["timeline"][key] for key in order]
        self.assertEqual(times, sorted(times))
        self.assertGreater(times[0], 0)
        self.assertEqual(case["status"], "PASSED")
        self.assertEqual(case["case"], "gemm:v1:k=64,m=64,n=64")
        self.assertEqual(case["metrics"]["time"]["n"], 20)
        self.assertEqual(case["metrics"]["time"]["unit"], "s")
        self.assertEqual(case["metrics"]["flops"]["unit"], "FLOP/s")
        self.assertEqual([r["node"] for r in case["ranks"]], ["n1", "n2", "n3", "n4"])
        p50 = case["metrics"]["time"]["p50"]
        self.assertAlmostEqual(case["metrics"]["flops"]["p50"] * p50 / (2 * 64**3), 1, delta=0.2)

    def test_defaults_end_within_twenty_seconds(self):
        result = self.fleet.submit("gemm", "--nodes", 2, timeout=20)
        self.assertEqual(result.code, 0, result)

    def test_text_table_goes_to_stdout_and_nothing_else(self):
        result = self.fleet.ctl("submit", *SMALL, "--nodes", 2, "--backend", "cpu")
        self.assertEqual(result.code, 0, result)
        self.assertIn("PASSED", result.out)
        self.assertIn("FLOP/s", result.out)

    def test_lists_and_sets_multiply_into_cases(self):
        result = self.fleet.submit("gemm", "--set", "smoke", "--dtype", "f32,f64", "--iters", 3, "--backend", "cpu")
        self.assertEqual(result.code, 0, result)
        cases = result.json()["cases"]
        self.assertEqual(len(cases) % 2, 0)
        self.assertTrue(all(c["status"] == "PASSED" for c in cases), cases)
        self.assertTrue(all(c["set_row"].startswith("smoke/") for c in cases))

    def test_what_a_backend_cannot_do_is_skipped_with_its_reason(self):
        result = self.fleet.submit(*SMALL, "--dtype", "f32,f16", "--backend", "cpu")
        self.assertEqual(result.code, 0, result)
        by_dtype = {c["params"]["dtype"]: c for c in result.json()["cases"]}
        self.assertEqual(by_dtype["f32"]["status"], "PASSED")
        self.assertEqual(by_dtype["f16"]["status"], "SKIPPED")
        self.assertIn("f16", by_dtype["f16"]["reason"])
        self.assertEqual(by_dtype["f16"]["metrics"], {})

    def test_no_passed_case_at_all_fails_the_job(self):
        result = self.fleet.submit(*SMALL, "--dtype", "f16", "--backend", "cpu")
        self.assertEqual(result.code, 1, result)
        self.assertEqual(result.json()["job"]["state"], "FAILED")

    def test_injected_flip_is_wrong_on_every_backend(self):
        for backend in ("cpu", "fake"):
            with self.subTest(backend):
                result = self.fleet.submit(*SMALL, "--nodes", 2, "--backend", backend, "--inject", "flip@1:17")
                self.assertEqual(result.code, 1, result)
                case = result.json()["cases"][0]
                self.assertEqual(case["status"], "WRONG")
                self.assertIn("17", case["reason"])
                self.assertEqual([r["status"] for r in case["ranks"]], ["PASSED", "WRONG"])

    def test_every_type_of_the_cpu_is_right_with_transposes(self):
        result = self.fleet.submit("gemm", "--m", 65, "--n", 33, "--k", 17, "--dtype", "f64,f32,bf16,i8",
                                   "--trans-a", "--iters", 3, "--backend", "cpu")
        self.assertEqual(result.code, 0, result)
        by_dtype = {c["params"]["dtype"]: c for c in result.json()["cases"]}
        for dtype in ("f64", "f32", "i8"):
            self.assertEqual(by_dtype[dtype]["status"], "PASSED", by_dtype[dtype])
        # oneDNN has bf16 from AVX-512 on.
        self.assertIn(by_dtype["bf16"]["status"], ("PASSED", "SKIPPED"), by_dtype["bf16"])

    def test_bad_words_are_refused_with_a_suggestion(self):
        for args, hint in [(["gem"], 'did you mean "gemm"'), (["gemm", "--dtpye", "f32"], "dtype"),
                           (["gemm", "--dtype", "f23"], "f32"), (["gemm", "--set", "smok"], "smoke")]:
            with self.subTest(args=args):
                result = self.fleet.ctl("submit", *args)
                self.assertEqual(result.code, 2, result)
                self.assertIn(hint, result.err)
                self.assertEqual(result.out, "")

    def test_bad_values_are_refused(self):
        for args in (["--m", "0"], ["--m", "99999999999999999999"], ["--m", "1:0:+1"], ["--iters", "-1"],
                     ["--nodes", "0"], ["--min-time", "soon"], ["--inject", "flop@0:0"],
                     ["--m", "1:100000:+1", "--n", "1:100000:+1"]):
            with self.subTest(args=args):
                result = self.fleet.ctl("submit", "gemm", *args)
                self.assertEqual(result.code, 2, result)

    def test_absurd_sizes_are_refused_with_both_numbers(self):
        result = self.fleet.ctl("submit", "gemm", "--m", 200000, "--n", 200000, "--k", 200000, "--dtype", "f64")
        self.assertEqual(result.code, 2, result)
        self.assertRegex(result.err, r"TiB")
        self.assertRegex(result.err, r"has [0-9.]+ GiB")
        result = self.fleet.ctl("submit", "gemm", "--m", 2147483647, "--n", 2147483647, "--k", 2147483647)
        self.assertEqual(result.code, 2, result)

    def test_a_node_named_twice_is_refused(self):
        result = self.fleet.ctl("submit", *SMALL, "--node", "n1", "--node", "n1")
        self.assertEqual(result.code, 2, result)
        self.assertIn("n1", result.err)

    def test_more_nodes_than_exist_wait_with_the_reason_or_are_refused(self):
        job_id = self.fleet.detach(*SMALL, "--nodes", 9)
        job = wait_for("a reason", lambda: (j := self.fleet.job(job_id)["job"])["reason"] and j)
        self.assertEqual(job["state"], "QUEUED")
        self.assertIn("needs 9 nodes; 4 ", job["reason"])
        self.assertEqual(self.fleet.ctl("job", "cancel", job_id).code, 0)
        self.fleet.wait_state(job_id, "CANCELLED")
        result = self.fleet.ctl("submit", *SMALL, "--nodes", 9, "--no-wait")
        self.assertEqual(result.code, 2, result)
        self.assertIn("needs 9 nodes", result.err)

    def test_named_nodes_and_labels_choose(self):
        self.assertEqual(self.fleet.ctl("node", "label", "n3", "rack=r7").code, 0)
        result = self.fleet.submit(*SMALL, "--selector", "rack=r7")
        self.assertEqual(result.json()["job"]["nodes"], ["n3"], result)
        result = self.fleet.submit(*SMALL, "--node", "n4")
        self.assertEqual(result.json()["job"]["nodes"], ["n4"], result)

    def test_job_is_listed_shown_logged_and_exported(self):
        job_id = self.fleet.submit(*SMALL, "--name", "listed").json()["job"]["id"]
        self.assertIn(job_id, self.fleet.ctl("job", "list").out)
        self.assertEqual(self.fleet.job(job_id)["job"]["state"], "SUCCEEDED")
        self.assertEqual(self.fleet.ctl("job", "logs", job_id).code, 0)
        self.assertEqual(self.fleet.ctl("job", "results", job_id).code, 0)
        self.assertEqual(self.fleet.ctl("job", "watch", job_id).code, 0)
        rows = [json.loads(l) for l in self.fleet.ctl("-o", "jsonl", "result", "list").out.splitlines()]
        self.assertTrue(any(job_id in json.dumps(row) for row in rows))
        samples = self.fleet.ctl("-o", "json", "result", "export", job_id, "--samples")
        self.assertEqual(samples.code, 0, samples)
        self.assertIn('"values"', samples.out)

    def test_same_seed_gives_the_same_case_and_a_repro_line(self):
        result = self.fleet.ctl("submit", *SMALL, "--backend", "cpu")
        self.assertRegex(result.out + result.err, r"paramctl submit gemm .*--m 64")

    def test_interrupt_detaches_and_the_job_goes_on(self):
        watched = self.fleet.start_ctl("submit", *LONG)
        job_id = None
        try:
            self.fleet.wait_workers("n1")
            watched.send_signal(signal.SIGINT)
            out, err = watched.communicate(timeout=20)
        finally:
            watched.kill()
        self.assertEqual(watched.returncode, 0, err)
        self.assertIn("paramctl job watch", err)
        job_id = err[err.index("j-"):][:12]
        self.assertIn(self.fleet.job(job_id)["job"]["state"], ("STARTING", "RUNNING"))
        self.assertEqual(self.fleet.ctl("job", "cancel", job_id).code, 0)
        self.fleet.wait_state(job_id, "CANCELLED")
        self.fleet.nothing_left()

    def test_timeout_ends_the_job_with_exit_code_five(self):
        result = self.fleet.submit(*LONG, "--timeout", "2s")
        self.assertEqual(result.code, 5, result)
        self.assertEqual(result.json()["job"]["state"], "TIMED_OUT")
        self.fleet.nothing_left()

    def test_drained_node_is_left_out_until_it_is_resumed(self):
        self.assertEqual(self.fleet.ctl("node", "drain", "n1", "--reason", "fan").code, 0)
        try:
            self.assertEqual(self.fleet.node_states()["n1"], "drained")
            self.assertEqual(self.fleet.submit(*SMALL).json()["job"]["nodes"], ["n2"])
        finally:
            self.assertEqual(self.fleet.ctl("node", "resume", "n1").code, 0)
        self.assertEqual(self.fleet.submit(*SMALL).json()["job"]["nodes"], ["n1"])

    def test_many_jobs_at_once_all_end_well(self):
        ids = [self.fleet.detach(*SMALL, "--backend", "fake", "--nodes", 1 + i % 4) for i in range(20)]
        for job_id in ids:
            self.assertEqual(self.fleet.wait_state(job_id, "SUCCEEDED", "FAILED")["job"]["state"], "SUCCEEDED")
        self.fleet.nothing_left()


class NoServer(unittest.TestCase):
    def test_unreachable_server_is_exit_three_with_the_address(self):
        done = subprocess.run([BIN / "paramctl", "--server", "127.0.0.1:1", "job", "list"], capture_output=True,
                              text=True, timeout=60)
        self.assertEqual(done.returncode, 3, done)
        self.assertIn("127.0.0.1:1", done.stderr)

    def test_server_refuses_to_listen_beyond_loopback_without_saying_so(self):
        done = subprocess.run([BIN / "param-server", "--listen", "0.0.0.0:0"], capture_output=True, text=True,
                              timeout=60)
        self.assertEqual(done.returncode, 2, done)
        self.assertIn("--insecure-listen", done.stderr)

    def test_second_server_on_one_state_folder_is_refused(self):
        with Fleet(0) as fleet:
            done = subprocess.run([BIN / "param-server", "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0", "--state",
                                   fleet.folder / "server"], capture_output=True, text=True, timeout=60)
            self.assertEqual(done.returncode, 1, done)
            self.assertIn("param.db", done.stderr)


if __name__ == "__main__":
    unittest.main()
