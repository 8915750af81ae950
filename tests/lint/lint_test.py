#!/usr/bin/env python3
"""Each lint rule against text that keeps it and text that breaks it."""
import pathlib
import sys
import unittest

sys.dont_write_bytecode = True
import check_includes  # noqa: E402
import check_style  # noqa: E402


def include(folder, target, file="x.cc"):
    return check_includes.complaint(pathlib.PurePosixPath(folder) / file, folder, target)


def style(path, text):
    return [what for _, what in check_style.check_text(pathlib.PurePosixPath(path), text)]


class Includes(unittest.TestCase):
    def test_core_sees_the_contract_only(self):
        self.assertEqual(include("server/core", "proto/catalog/spec.h"), "")
        self.assertIn("may not", include("server/core", "server/store/sqlite_store.h"))
        for library in ("grpcpp/grpcpp.h", "google/protobuf/message.h", "sqlite3.h", "prometheus/gauge.h"):
            self.assertIn("may not use", include("server/core", library))
            self.assertIn("may not use", include("agent/core", library))

    def test_vendor_names_stay_below_backends(self):
        self.assertEqual(include("agent/backends/cuda", "cublasLt.h"), "")
        self.assertEqual(include("agent/backends/cpu", "oneapi/dnnl/dnnl.h"), "")
        for folder in ("agent/backends/cpu", "agent/bench", "agent/worker", "agent/core", "server/rpc"):
            self.assertIn("may not use cuda", include(folder, "cuda_runtime.h"))

    def test_a_backend_sees_the_kit_and_itself(self):
        self.assertEqual(include("agent/backends/cuda", "agent/backend/kit.h"), "")
        self.assertEqual(include("agent/backends/cuda", "agent/backends/cuda/gemm.h"), "")
        self.assertIn("may not", include("agent/backends/cuda", "agent/backends/cpu/gemm.h"))
        self.assertIn("may not", include("agent/backends/cuda", "proto/catalog/spec.h"))

    def test_a_worker_links_no_protobuf(self):
        self.assertIn("may not", include("agent/worker", "param/v1/agent.pb.h"))
        self.assertIn("may not use protobuf", include("agent/worker", "google/protobuf/message.h"))

    def test_services_are_for_rpc_folders(self):
        self.assertEqual(include("server/rpc", "param/v1/job.grpc.pb.h"), "")
        self.assertIn("services", include("client/output", "param/v1/job.grpc.pb.h"))

    def test_programs_meet_in_proto(self):
        self.assertEqual(include("client", "client/cmd/command.h", "main.cc"), "")
        self.assertIn("may not", include("client/cmd", "server/core/jobs.h"))
        self.assertIn("only main.cc", include("agent", "agent/core/session.h", "helper.cc"))

    def test_a_new_folder_needs_a_row(self):
        self.assertIn("no row", include("deploy/tool", "proto/base/text.h"))
        self.assertIn("no row", include("server/new", "proto/base/text.h"))


class Style(unittest.TestCase):
    def test_banned_words(self):
        for path, line in (
                ("server/core/a.cc", "void F(std::string" "_view text);"),
                ("server/core/a.cc", "absl::Mu" "tex mutex;"),
                ("client/cmd/a.cc", "out << std::en" "dl;"),
                ("client/cmd/a.cc", "using name" "space std;"),
                ("server/core/a.cc", "int* p = NU" "LL;"),
                ("server/core/a.cc", 'pri' 'ntf("x");'),
                ("tests/unit/server/core/a_test.cc", "std::this_thread::sleep" "_for(x);"),
        ):
            self.assertEqual(len(style(path, line + "\n")), 1, line)

    def test_words_in_strings_and_comments_are_free(self):
        self.assertEqual(style("server/core/a.cc", 'Log("NU' 'LL");  // NU' 'LL\n'), [])

    def test_nolint_needs_a_check_and_a_reason(self):
        self.assertEqual(len(style("server/core/a.cc", "int x;  // NOLI" "NT\n")), 1)
        self.assertEqual(len(style("server/core/a.cc", "int x;  // NOLI" "NT(misc-x)\n")), 1)
        self.assertEqual(style("server/core/a.cc", "int x;  // NOLI" "NT(misc-x): the ABI wants it\n"), [])

    def test_clean_text(self):
        self.assertEqual(style("README.md", "fine\n"), [])
        for text in ("no newline", "TO" "DO: more\n", "see /wo" "rk/main/x\n", "space \n", "cr\r\n"):
            self.assertTrue(style("README.md", text), text)

    def test_long_files(self):
        self.assertEqual(style("server/core/a.cc", "\n" * 500), [])
        self.assertEqual(len(style("server/core/a.cc", "\n" * 501)), 1)


if __name__ == "__main__":
    unittest.main()
