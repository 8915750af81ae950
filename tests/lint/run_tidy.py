#!/usr/bin/env python3
"""clang-tidy over sources: run_tidy.py BUILD_DIR [--all | --max N].

Without --all: the sources that differ from where this branch left origin/main (or from the last
commit), at most N of them, for a file takes some 14 s. Generated code and CUDA are left out.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys

from source_files import ROOT


def git(*words):
    done = subprocess.run(["git", "-c", f"safe.directory={ROOT}", "-C", str(ROOT), *words],
                          check=False, capture_output=True, text=True)
    return done.stdout.split("\n") if done.returncode == 0 else []


def changed():
    """Changed and new files, as paths from the root."""
    head = git("rev-parse", "HEAD")[:1]
    base = git("merge-base", "HEAD", "origin/main")[:1]
    if not base or base == head:
        base = git("rev-parse", "HEAD~1")[:1] or head
    names = set(git("diff", "--name-only", *base)) if base else set()
    return names | set(git("ls-files", "--others", "--exclude-standard"))


def compiled(build):
    """Sources of ours in the compilation database, tests left out."""
    names = set()
    for entry in json.loads((build / "compile_commands.json").read_text()):
        path = pathlib.Path(entry["directory"], entry["file"]).resolve()
        if path.suffix == ".cc" and path.is_relative_to(ROOT):
            name = str(path.relative_to(ROOT))
            if name.split("/")[0] in ("proto", "server", "agent", "client"):
                names.add(name)
    return names


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--max", type=int, default=8)
    options = parser.parse_args()
    files = sorted(compiled(options.build))
    if not options.all:
        new = changed()
        files = [name for name in files if name in new]
        if len(files) > options.max:
            print(f"clang-tidy: {len(files)} files changed, {options.max} checked here; --full checks all")
            step = len(files) / options.max
            files = [files[int(at * step)] for at in range(options.max)]

    def tidy(name):
        done = subprocess.run(["clang-tidy", "--quiet", "--extra-arg=-Wno-unknown-warning-option", "-p", str(options.build), name], cwd=ROOT,
                              check=False, capture_output=True, text=True)
        if done.returncode != 0:
            print(f"{done.stdout}{done.stderr}".strip(), flush=True)
        return done.returncode

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        failed = sum(1 for code in pool.map(tidy, files) if code != 0)
    print(f"clang-tidy: {len(files)} files, {failed} with findings")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
