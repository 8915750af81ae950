#!/usr/bin/env python3
"""Checks the CUDA backend's object without a GPU: check_object.py PATH/cuda.so

Code for sm_80, sm_90 and PTX for what comes later; one exported symbol; neither the driver nor NVML
linked; and the probe's answer: devices, or the runtime's words why there are none.
"""
import ctypes
import struct
import subprocess
import sys
import unittest

FATBIN_MAGIC = struct.pack("<I", 0xBA55ED50)
PTX, ELF = 1, 2


def device_code(path):
    """{(kind, compute capability)} of all device code, as cuobjdump --list-elf --list-ptx."""
    with open(path, "rb") as file:
        data = file.read()
    found = set()
    at = data.find(FATBIN_MAGIC)
    while at >= 0:
        header_size, size = struct.unpack_from("<HQ", data, at + 6)
        entry, end = at + header_size, at + header_size + size
        while entry < end:
            kind, _, entry_header, entry_size = struct.unpack_from("<HHIQ", data, entry)
            found.add((kind, struct.unpack_from("<I", data, entry + 28)[0]))
            entry += entry_header + entry_size
        at = data.find(FATBIN_MAGIC, end)
    return found


class ParamError(ctypes.Structure):
    _fields_ = [("code", ctypes.c_int32), ("message", ctypes.c_char * 1020)]


class Backend(ctypes.Structure):  # param_backend_v1
    _fields_ = [("struct_size", ctypes.c_uint32), ("abi_major", ctypes.c_uint32),
                ("abi_minor", ctypes.c_uint32), ("name", ctypes.c_char_p),
                ("version", ctypes.c_char_p),
                ("table", ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_char_p))]


class DeviceHead(ctypes.Structure):  # the first entries of param_device_v1
    _fields_ = [("struct_size", ctypes.c_uint32), ("kind", ctypes.c_char_p),
                ("probe", ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.POINTER(ParamError)))]


class CudaObject(unittest.TestCase):
    path = ""

    def test_has_code_for_each_architecture_and_ptx(self):
        code = device_code(self.path)
        for wanted in ((ELF, 80), (ELF, 90), (PTX, 90)):
            self.assertIn(wanted, code)

    def test_exports_one_symbol(self):
        listed = subprocess.run(["nm", "-D", "--defined-only", self.path], check=True,
                                capture_output=True, text=True).stdout.split("\n")
        names = [line.split()[-1] for line in listed if line]
        self.assertEqual(names, ["param_backend_entry_v1"])

    def test_links_neither_driver_nor_runtime(self):
        read = subprocess.run(["readelf", "-d", self.path], check=True, capture_output=True,
                              text=True).stdout
        for name in ("libcuda.so", "libnvidia-ml.so", "libcudart.so"):
            self.assertNotIn(name, read)
        self.assertIn("libcublasLt.so", read)

    def test_probe_finds_devices_or_says_why_not(self):
        library = ctypes.CDLL(self.path)
        library.param_backend_entry_v1.restype = ctypes.POINTER(Backend)
        backend = library.param_backend_entry_v1().contents
        self.assertEqual(backend.name, b"cuda")
        self.assertIsNone(backend.table(b"comm"))
        device = ctypes.cast(backend.table(b"device"), ctypes.POINTER(DeviceHead)).contents
        self.assertEqual(device.kind, b"cuda")
        error = ParamError()
        count = device.probe(ctypes.byref(error))
        if count < 0:
            self.assertRegex(error.message.decode(), r"^(cudaGetDeviceCount: .+ \(cudaError\w+\)|.+ is needed)$")
            self.assertNotEqual(error.code, 0)


if __name__ == "__main__":
    CudaObject.path = sys.argv.pop(1)
    unittest.main()
