#!/usr/bin/env python3
"""Fails when a file is not as clang-format writes it; `--fix` writes it so."""
import concurrent.futures
import os
import subprocess
import sys

from source_files import ROOT, code_files


def main():
    files = [str(path) for path in code_files()]
    mode = ["-i"] if "--fix" in sys.argv else ["--dry-run", "-Werror"]
    chunks = [files[at:at + 8] for at in range(0, len(files), 8)]

    def check(chunk):
        return subprocess.run(["clang-format", *mode, *chunk], cwd=ROOT, check=False).returncode

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        results = list(pool.map(check, chunks))
    if any(results):
        print("to fix: python3 tests/lint/check_format.py --fix")
    return 1 if any(results) else 0


if __name__ == "__main__":
    sys.exit(main())
