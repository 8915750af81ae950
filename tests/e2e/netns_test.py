"""Several hosts on one machine: each agent in a network namespace of its own with its own host name,
joined by a bridge. Needs root; ends with 77 where that is not allowed."""

import os
import subprocess
import sys
import unittest

from harness import LONG, SMALL, Fleet, wait_for
from mpirun_test import MPI, processes_of

NETWORK = "10.77.0"
INSIDE = "PARAM_TEST_INSIDE_NAMESPACE"


def run(*args):
    subprocess.run(list(map(str, args)), check=True, capture_output=True, text=True)


class Host:
    """A namespace with one link to the bridge of this process's own; gone with its holder."""

    def __init__(self, number):
        self.number = number
        self.link = f"to-host{number}"
        self.holder = subprocess.Popen(["unshare", "--net", "--uts", "sleep", "infinity"],
                                       stdin=subprocess.DEVNULL)
        own = os.readlink("/proc/self/ns/net")
        wait_for("a new namespace", lambda: self.namespace() not in (None, own))
        pid = self.holder.pid
        run("ip", "link", "add", self.link, "type", "veth", "peer", "name", "eth0", "netns", pid)
        run("ip", "link", "set", self.link, "master", "bridge", "up")
        for command in (f"hostname host{number}", f"ip address add {NETWORK}.{number}/24 dev eth0",
                        "ip link set eth0 up", "ip link set lo up"):
            run(*self.enter(), *command.split())

    def namespace(self):
        try:
            return os.readlink(f"/proc/{self.holder.pid}/ns/net")
        except OSError:
            return None

    def enter(self):
        return ["nsenter", "--target", str(self.holder.pid), "--net", "--uts", "--"]

    def cut(self):
        run("ip", "link", "set", self.link, "down")

    def mend(self):
        run("ip", "link", "set", self.link, "up")

    def close(self):
        self.holder.kill()
        self.holder.wait()


class Hosts(Fleet):
    """Agent nI runs on host I."""

    def __init__(self, nodes):
        super().__init__(nodes, server_args=("--insecure-listen", f"{NETWORK}.254:0"))
        run("ip", "link", "set", "lo", "up")
        run("ip", "link", "add", "bridge", "type", "bridge")
        run("ip", "address", "add", f"{NETWORK}.254/24", "dev", "bridge")
        run("ip", "link", "set", "bridge", "up")
        self.hosts = {f"n{i}": Host(i) for i in range(1, nodes + 1)}

    def spawn(self, name, args):
        host = self.hosts.get(name.removeprefix("agent-"))
        return super().spawn(name, [*(host.enter() if host else []), *args])

    def close(self):
        try:
            super().close()
        finally:
            for host in self.hosts.values():
                host.close()


class NetworkTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.fleet = Hosts(4)
        cls.fleet.__enter__()
        cls.addClassCleanup(cls.fleet.close)

    def test_mpi_across_hosts(self):
        result = self.fleet.submit(*SMALL, "--nodes", 4, *MPI)
        self.assertEqual(result.code, 0, f"{result}\n{self.fleet.tails()}")
        job = result.json()["job"]
        self.assertEqual(job["ranks"], 4)
        facts = [rank["facts"] for rank in result.json()["environment"]]
        self.assertEqual([f["hostname"] for f in facts], ["host1", "host2", "host3", "host4"])
        for rank in facts:  # not loopback, which they do not share
            self.assertEqual(rank["env.OMPI_MCA_btl_tcp_if_include"], f"{NETWORK}.0/24")
        self.fleet.nothing_left()
        self.assertFalse(processes_of(job["id"]))

    def test_a_cut_link_names_the_node(self):
        job_id = self.fleet.detach(*LONG, "--nodes", 4, *MPI)
        wait_for("the first timed iteration",
                 lambda: self.fleet.job(job_id)["job"]["timeline"]["first_timed"])
        self.fleet.hosts["n3"].cut()
        try:
            failure = self.fleet.wait_state(job_id, "FAILED")["job"]["failure"]
            self.assertEqual((failure["node"], failure["rank"]), ("n3", 2), failure)
            self.assertIn("agent lost", failure["cause"])
            wait_for("all processes to be gone, also behind the cut", lambda: not processes_of(job_id), 30)
        finally:
            self.fleet.hosts["n3"].mend()
        self.fleet.wait_ready(4)


if __name__ == "__main__":
    if INSIDE not in os.environ:
        links = "ip link add name br0 type bridge && ip link add name ve0 type veth peer name ve1"
        allowed = subprocess.run(["unshare", "--net", "--uts", "sh", "-c", links], capture_output=True, check=False)
        if allowed.returncode != 0:
            print("no network namespaces with bridge and veth here:", allowed.stderr.decode().strip())
            sys.exit(77)
        os.execvpe("unshare", ["unshare", "--net", "--uts", sys.executable, __file__],
                   {**os.environ, INSIDE: "1"})
    unittest.main(verbosity=2)
