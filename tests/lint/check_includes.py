#!/usr/bin/env python3
"""Fails when a file includes what its folder may not. The tables are the architecture.

Two questions per include: may this folder see that folder of ours, and may it see that library?
CMake's links repeat the first; the second keeps the cores pure and vendors behind the C ABI.
"""
import re
import sys

from source_files import code_files, read

CONTRACT = ("proto/base", "proto/catalog")
WIRE = CONTRACT + ("proto/convert", "param/v1")

# Folder: folders of ours it may include besides itself. The longest matching row counts. A file of a
# folder without a row is an error: a new folder states its place here.
MAY = {
    "proto/base": (),
    "proto/catalog": ("proto/base",),
    "proto/line": CONTRACT,
    "proto/daemon": ("proto/base",),
    "proto/convert": CONTRACT + ("proto/line", "param/v1"),
    "sql": ("proto/base",),
    "server/core": CONTRACT + ("proto/line",),
    "server/store": CONTRACT + ("proto/line", "server/core"),
    "server/metrics": ("proto/base", "server/core"),
    "server/rpc": WIRE + ("proto/line", "server/core"),
    "server": WIRE + ("proto/daemon", "server"),
    "agent/backend": ("proto/base",),
    "agent/backends": ("agent/backend",),
    "agent/bench": CONTRACT + ("agent/backend",),
    "agent/worker": CONTRACT + ("proto/line", "agent/backend", "agent/bench"),
    "agent/core": CONTRACT + ("proto/line",),
    "agent/process": CONTRACT + ("proto/line", "agent/backend", "agent/core"),
    "agent/rpc": WIRE + ("proto/line", "agent/core"),
    "agent/metrics": ("proto/base", "agent/core"),
    "agent": WIRE + ("proto/daemon", "proto/line", "agent/core", "agent/metrics",
                     "agent/process", "agent/rpc"),
    "client/output": CONTRACT + ("proto/convert", "param/v1"),
    "client/import": CONTRACT + ("param/v1",),
    "client/rpc": WIRE,
    "client/cmd": WIRE + ("client/import", "client/output", "client/rpc"),
    "client": WIRE + ("client",),
    "tests/gpu": ("proto/base", "agent/backend", "agent/bench", "tests/fakes"),
    "tests": ("proto", "param/v1", "sql", "server", "agent", "client", "tests"),
}

# Library: how its includes begin.
LIBRARIES = {
    "protobuf": ("google/protobuf", "google/rpc"),
    "grpc": ("grpc/", "grpcpp/", "grpc++"),
    "sqlite": ("sqlite3",),
    "zstd": ("zstd",),
    "prometheus": ("prometheus/",),
    "civetweb": ("civetweb", "CivetServer"),
    "json": ("nlohmann/",),
    "spdlog": ("spdlog/", "fmt/"),
    "cli11": ("CLI/",),
    "dlopen": ("dlfcn.h", "link.h"),
    "cuda": ("cuda", "cublas", "nvml", "curand", "cudnn", "driver_types", "library_types"),
    "nccl": ("nccl",),
    "mpi": ("mpi.h",),
    "onednn": ("dnnl", "oneapi/dnnl"),
    "blas": ("cblas", "openblas", "lapack"),
    "torch": ("torch/", "ATen/", "c10/"),
    "gloo": ("gloo/",),
    "absl": ("absl/",),
}

# Folder: libraries it may use. Everything not named is forbidden.
USES = {
    "proto/base": ("absl",),
    "proto/catalog": ("absl",),
    "proto/line": ("absl", "json"),
    "proto/daemon": ("absl", "civetweb", "prometheus", "spdlog"),
    "proto/convert": ("absl", "json", "protobuf", "grpc"),
    "sql": ("absl",),
    "server/core": ("absl",),
    "server/store": ("absl", "sqlite", "zstd", "json"),
    "server/metrics": ("absl", "prometheus"),
    "server/rpc": ("absl", "protobuf", "grpc"),
    "server": ("absl", "protobuf", "grpc", "prometheus", "spdlog", "cli11"),
    "agent/backend": ("absl", "json", "dlopen"),
    "agent/backends/cpu": ("onednn", "blas", "dlopen"),
    "agent/backends/cuda": ("cuda", "dlopen"),
    "agent/backends/fake": ("json",),
    "agent/backends/gloo": ("gloo",),
    "agent/backends/nccl": ("cuda", "nccl"),
    "agent/backends/mpi": ("mpi",),
    "agent/backends": (),
    "agent/bench": ("absl", "json"),
    "agent/worker": ("absl", "json", "dlopen"),
    "agent/core": ("absl",),
    "agent/process": ("absl", "json", "dlopen"),  # NVML at run time, for the inventory
    "agent/rpc": ("absl", "protobuf", "grpc"),
    "agent/metrics": ("absl", "prometheus"),
    "agent": ("absl", "protobuf", "grpc", "prometheus", "spdlog", "cli11"),
    "client/output": ("absl", "json", "protobuf"),
    "client/import": ("absl", "json", "protobuf"),
    "client/rpc": ("absl", "protobuf", "grpc"),
    "client/cmd": ("absl", "json", "protobuf", "grpc", "cli11"),
    "client": ("absl", "protobuf", "grpc", "cli11"),
    "tests": tuple(LIBRARIES),
}

INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)')
PROGRAMS = ("server", "agent", "client")  # rows of main.cc files, not of folders below
GOOGLE = ("absl/", "gtest/", "gmock/", "benchmark/")
OURS = ("proto/", "param/v1/", "sql/", "server/", "agent/", "client/", "tests/", "deploy/")


def row_of(table, folder):
    """The longest key of `table` that is `folder` or a parent of it, else None."""
    while folder not in table:
        if "/" not in folder:
            return None
        folder = folder.rsplit("/", 1)[0]
    return folder


def inside(target, folders):
    return any(target.startswith(folder + "/") for folder in folders)


def complaint(path, folder, target):
    """What is wrong with `target` in a file of `folder`, or ""."""
    if target.startswith(OURS):
        row = row_of(MAY, folder)
        if row is None or (row in PROGRAMS and folder != row):
            return f"{folder} has no row in the table of tests/lint/check_includes.py"
        # A backend's own folder is its own; the other backends' are not.
        allowed = (folder if row == "agent/backends" else row, *MAY[row])
        if row in PROGRAMS and path.stem != "main":
            return f"only main.cc stands directly in {folder}/"
        if target.endswith(".grpc.pb.h") and "grpc" not in USES.get(row_of(USES, folder), ()):
            return f"{folder} may not include services: {target}"
        return "" if inside(target, allowed) else f"{folder} may not include {target}"
    row = row_of(USES, folder)
    if row is None:
        return ""
    for library, beginnings in LIBRARIES.items():
        if target.startswith(beginnings) and library not in USES[row]:
            return f"{folder} may not use {library}: {target}"
    return ""


def main():
    bad = 0
    for path in code_files():
        folder = str(path.parent)
        for number, line in enumerate(read(path).splitlines(), 1):
            match = INCLUDE.match(line)
            if not match:
                continue
            target = match.group(1)
            quoted = '"' in line.split(target)[0]
            problem = complaint(path, folder, target)
            # Ours are written from the root; Google's own are quoted by habit.
            if not problem and quoted and not target.startswith(OURS + GOOGLE):
                problem = f"write quoted includes from the root of the tree: {target}"
            if problem:
                bad += 1
                print(f"{path}:{number}: {problem}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
