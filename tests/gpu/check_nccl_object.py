#!/usr/bin/env python3
"""Checks the nccl backend's object without a GPU: check_nccl_object.py PATH/nccl.so

NCCL linked, neither the driver nor the CUDA runtime; the probe's answer; and what does not need a
GPU: unique ids, and the refusal of a device backend that is none of NVIDIA's.
"""
import ctypes
import subprocess
import sys
import unittest

from check_object import Backend, ParamError

ID_BYTES = 256
FAILED_PRECONDITION = 9


class DeviceHead(ctypes.Structure):  # the first entries of param_device_v1
    _fields_ = [("struct_size", ctypes.c_uint32), ("kind", ctypes.c_char_p),
                ("rest", ctypes.c_void_p * 64)]


ErrorPointer = ctypes.POINTER(ParamError)


class CommHead(ctypes.Structure):  # the first entries of param_comm_v1
    _fields_ = [("struct_size", ctypes.c_uint32), ("kind", ctypes.c_char_p),
                ("probe", ctypes.CFUNCTYPE(ctypes.c_int32, ErrorPointer)),
                ("open", ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p,
                                          ctypes.c_void_p, ctypes.c_void_p, ErrorPointer)),
                ("close", ctypes.CFUNCTYPE(None, ctypes.c_void_p)),
                ("unique_id", ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_char_p,
                                               ErrorPointer))]


class NcclObject(unittest.TestCase):
    path = ""

    def setUp(self):
        library = ctypes.CDLL(self.path)
        library.param_backend_entry_v1.restype = ctypes.POINTER(Backend)
        self.backend = library.param_backend_entry_v1().contents
        self.comm = ctypes.cast(self.backend.table(b"comm"), ctypes.POINTER(CommHead)).contents
        self.error = ParamError()

    def test_links_nccl_and_neither_driver_nor_runtime(self):
        read = subprocess.run(["readelf", "-d", self.path], check=True, capture_output=True,
                              text=True).stdout
        for name in ("libcuda.so", "libnvidia-ml.so", "libcudart.so"):
            self.assertNotIn(name, read)
        self.assertIn("libnccl.so.2", read)

    def test_has_the_table_comm_alone(self):
        self.assertEqual(self.backend.name, b"nccl")
        self.assertEqual(self.comm.kind, b"nccl")
        self.assertIsNone(self.backend.table(b"device"))
        self.assertIsNone(self.backend.table(b"native"))

    def test_probe_finds_devices_or_says_why_not(self):
        if self.comm.probe(ctypes.byref(self.error)) < 0:
            self.assertRegex(self.error.message.decode(),
                             r"^(cudaGetDeviceCount: .+ \(cudaError\w+\)|there is no CUDA device)$")
            self.assertEqual(self.error.code, FAILED_PRECONDITION)

    def test_unique_ids_differ(self):
        ids = []
        for _ in range(2):
            text = ctypes.create_string_buffer(ID_BYTES)
            self.assertEqual(self.comm.unique_id(None, text, ctypes.byref(self.error)), 0,
                             self.error.message)
            ids.append(text.raw)
        self.assertNotEqual(ids[0], ids[1])
        self.assertEqual(ids[0][128:], bytes(128))

    def test_refuses_a_device_backend_without_gpus(self):
        device = DeviceHead(ctypes.sizeof(DeviceHead), b"cpu")
        out = ctypes.c_void_p()
        code = self.comm.open(None, ctypes.addressof(device), ctypes.addressof(device),
                              ctypes.byref(out), ctypes.byref(self.error))
        self.assertEqual(code, FAILED_PRECONDITION)
        self.assertEqual(self.error.message,
                         b"nccl works on memory and streams of backend cuda, not of cpu")
        code = self.comm.open(None, None, None, ctypes.byref(out), ctypes.byref(self.error))
        self.assertEqual(code, FAILED_PRECONDITION)
        self.assertIsNone(out.value)


if __name__ == "__main__":
    NcclObject.path = sys.argv.pop(1)
    unittest.main()
