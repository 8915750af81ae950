"""Real programs on loopback: a coordinator, agents, paramctl. Each Fleet is apart from all others.

PARAM_BIN_DIR names the folder of the programs under test. Nothing here sleeps for a result: wait_for()
polls a condition until a deadline.
"""

import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import time
import unittest
import urllib.error
import urllib.request

BIN = pathlib.Path(os.environ.get("PARAM_BIN_DIR", "build/release/bin")).resolve()
# Everything takes longer under a sanitizer.
PATIENCE = float(os.environ.get("PARAM_TEST_PATIENCE", "1"))


def wait_for(what, condition, timeout=30.0):
    """The first true value of condition(), polled until `timeout` seconds."""
    deadline = time.monotonic() + timeout * PATIENCE
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {timeout * PATIENCE:.0f} s in vain for {what}")
        time.sleep(0.02)


def read_stat(pid):
    """(state, parent) of a process, or None when it is gone."""
    try:
        text = pathlib.Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    rest = text[text.rindex(")") + 2 :].split()
    return rest[0], int(rest[1])


def alive(pid):
    stat = read_stat(pid)
    return stat is not None and stat[0] not in "ZX"  # dead children may stay as zombies in a container


def descendants(root):
    children = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            stat = read_stat(int(entry))
            if stat and stat[0] not in "ZX":
                children.setdefault(stat[1], []).append(int(entry))
    found, todo = [], [root]
    while todo:
        for child in children.get(todo.pop(), []):
            found.append(child)
            todo.append(child)
    return found


def program_of(pid):
    try:
        return os.path.basename(os.readlink(f"/proc/{pid}/exe"))
    except OSError:
        return ""


def command_of(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b"--probe"  # gone: nobody's rank


class Result:
    def __init__(self, done):
        self.code = done.returncode
        self.out = done.stdout
        self.err = done.stderr

    def json(self):
        return json.loads(self.out)

    def __repr__(self):
        return f"exit {self.code}\n--- stdout\n{self.out}\n--- stderr\n{self.err}"


class Fleet:
    """A coordinator and agents n1..nN in a folder of their own; a context manager."""

    def __init__(self, nodes=2, server_args=(), agent_args=(), lease="3s", server_prefix=()):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="param-e2e-"))
        self.server_args = list(server_args)
        self.server_prefix = list(server_prefix)  # a command that ends by executing its arguments
        self.agent_args = list(agent_args)
        self.lease = lease
        self.nodes = nodes
        self.server = None
        self.address = None
        self.agents = {}
        self.logs = []

    def __enter__(self):
        try:
            self.start_server()
            for i in range(1, self.nodes + 1):
                self.start_agent(f"n{i}")
            self.wait_ready(self.nodes)
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *exc):
        if exc and exc[0] is not None:
            print(self.tails())
        self.close()

    def spawn(self, name, args):
        log = open(self.folder / f"{name}.log", "ab")
        self.logs.append(log)
        environment = {k: v for k, v in os.environ.items() if not k.startswith("PARAM_S")}
        return subprocess.Popen(args, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.folder,
                                env=environment, start_new_session=True)

    def start_server(self):
        state = self.folder / "server"
        listen = self.address or "127.0.0.1:0"
        (state / "listen").unlink(missing_ok=True)
        self.server = self.spawn("server", [
            *self.server_prefix, BIN / "param-server", "--listen", listen, "--http", "127.0.0.1:0",
            "--state", state, "--lease", self.lease, "--heartbeat", "500ms", *self.server_args])

        def bound():
            if self.server.poll() is not None:
                raise AssertionError(f"param-server ended with {self.server.returncode}\n{self.tails()}")
            listens = self.state_of("server") / "listen"
            return listens.exists() and listens.read_text().strip()

        self.address = wait_for("the coordinator's address", bound)

    def state_of(self, name):
        """A program's state folder; the server's as that process sees it, which may have mounts of its own."""
        if name != "server":
            return self.folder / f"agent-{name}"
        state = self.folder / "server"
        return pathlib.Path(f"/proc/{self.server.pid}/root{state}") if self.server_prefix else state

    def start_agent(self, name, state=None, extra=()):
        state = state or self.folder / f"agent-{name}"
        agent = self.spawn(f"agent-{name}", [
            BIN / "param-agent", "--server", self.address, "--name", name, "--http", "127.0.0.1:0",
            "--state", state, *self.agent_args, *extra])
        self.agents[name] = agent
        return agent

    def http_address(self, name):
        file = self.state_of(name) / "http"
        return wait_for(f"the http address of {name}", lambda: file.exists() and file.read_text().strip())

    def http(self, name, path):
        with urllib.request.urlopen(f"http://{self.http_address(name)}{path}", timeout=10) as answer:
            return answer.read().decode()

    def http_status(self, name, path):
        """(status, text), of refusals too."""
        try:
            return 200, self.http(name, path)
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()

    def metric(self, name, metric):
        """The value of a metric without labels."""
        for line in self.http(name, "/metrics").splitlines():
            if line.startswith(metric + " "):
                return float(line.split()[1])
        raise AssertionError(f"{name} has no metric {metric}")

    def ctl(self, *args, timeout=120, env=None):
        done = subprocess.run([BIN / "paramctl", "--server", self.address, *map(str, args)],
                              capture_output=True, text=True, timeout=timeout * PATIENCE,
                              stdin=subprocess.DEVNULL, env={**os.environ, **(env or {})})
        return Result(done)

    def start_ctl(self, *args):
        return subprocess.Popen([BIN / "paramctl", "--server", self.address, *map(str, args)],
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                text=True)

    def start_probe(self, *args):
        """rpc_probe, which speaks the protocol but is none of our programs: a JSON object a line."""
        return subprocess.Popen([BIN / "rpc_probe", args[0], "--server", self.address, *map(str, args[1:])],
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def probe(self, *args):
        """All lines that rpc_probe prints."""
        with self.start_probe(*args) as probe:
            out, _ = probe.communicate(timeout=60 * PATIENCE)
        return [json.loads(line) for line in out.splitlines()]

    def submit(self, *args, script=None, timeout=120):
        return self.ctl("-o", "json", "submit", *args, *self.script_args(script), timeout=timeout)

    def detach(self, *args, script=None):
        """Submits and returns the job's id."""
        result = self.ctl("submit", *args, *self.script_args(script), "--detach")
        if result.code != 0:
            raise AssertionError(result)
        return re.search(r"j-[a-z2-7]{10}", result.out + result.err).group(0)

    def script_args(self, script):
        if script is None:
            return []
        path = self.folder / f"script-{time.monotonic_ns()}.json"
        path.write_text(json.dumps(script))
        return ["--fake-script", path]

    def job(self, job_id):
        result = self.ctl("-o", "json", "job", "show", job_id)
        if result.code not in (0, 1, 5):
            raise AssertionError(result)
        return result.json()

    def wait_state(self, job_id, *states, timeout=60):
        def reached():
            job = self.job(job_id)
            return job if job["job"]["state"] in states else None

        return wait_for(f"{job_id} to be {' or '.join(states)}", reached, timeout)

    def node_states(self):
        rows = self.ctl("-o", "json", "node", "list").json()
        return {node["name"]: node["state"] for node in rows["nodes"]}

    def wait_ready(self, count):
        wait_for(f"{count} ready nodes",
                 lambda: sum(s == "ready" for s in self.node_states().values()) >= count)

    def workers(self, name):
        """Ranks of attempts; not the throw-away probes of backends."""
        return [p for p in descendants(self.agents[name].pid)
                if program_of(p) == "param-worker" and b"--probe" not in command_of(p)]

    def wait_workers(self, name, count=1):
        return wait_for(f"{count} workers of {name}",
                        lambda: (w := self.workers(name)) and len(w) >= count and w)

    def nothing_left(self):
        """No process is left below any agent."""
        for name, agent in self.agents.items():
            if agent.poll() is None:
                wait_for(f"{name} to have no children", lambda agent=agent: not descendants(agent.pid), 10)

    def kill(self, process):
        process.send_signal(signal.SIGKILL)
        process.wait()

    def pause(self, pid):
        os.kill(pid, signal.SIGSTOP)
        wait_for(f"{pid} to be stopped", lambda: read_stat(pid)[0] == "T")

    def all_ready(self):
        """Every node is free again."""
        wait_for("all nodes to be free", lambda: set(self.node_states().values()) == {"ready"})

    def tails(self):
        out = []
        for path in sorted(self.folder.glob("*.log")):
            out.append(f"--- {path.name}\n{path.read_text(errors='replace')[-3000:]}")
        return "\n".join(out)

    def close(self):
        processes = [p for p in [*self.agents.values(), self.server] if p is not None]
        below = [pid for p in processes for pid in descendants(p.pid)]
        for process in processes:
            if process.poll() is None:
                process.terminate()
                process.send_signal(signal.SIGCONT)  # a test that failed may leave one stopped
        for process in processes:
            try:
                process.wait(15 * PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        left = [pid for pid in below if alive(pid)]
        deadline = time.monotonic() + 5 * PATIENCE
        while left and time.monotonic() < deadline:
            left = [pid for pid in left if alive(pid)]
            time.sleep(0.02)
        for log in self.logs:
            log.close()
        shutil.rmtree(self.folder, ignore_errors=True)
        if left:
            raise AssertionError(f"processes left behind: {left}")


# A gemm that every machine does at once, and one that runs until it is stopped.
SMALL = ["gemm", "--m", "64", "--n", "64", "--k", "64", "--iters", "5"]
LONG = ["gemm", "--m", "64", "--n", "64", "--k", "64", "--min-time", "300s", "--max-time", "300s"]


class FleetTest(unittest.TestCase):
    """One fleet for all tests of the class: they leave it as they found it."""

    nodes = 2
    fleet_options = {}

    @classmethod
    def setUpClass(cls):
        cls.fleet = Fleet(cls.nodes, **cls.fleet_options)
        cls.fleet.__enter__()
        cls.addClassCleanup(cls.fleet.close)

    def run(self, result=None):
        before, begin = len(result.failures) + len(result.errors), time.monotonic()
        super().run(result)
        print(f"{time.monotonic() - begin:7.2f} s  {self.id()}", flush=True)
        if len(result.failures) + len(result.errors) > before:
            print(self.fleet.tails())

    def assert_failure(self, document, **expected):
        failure = document["job"]["failure"]
        self.assertIsNotNone(failure, document["job"])
        for key, value in expected.items():
            if key == "cause":
                self.assertIn(value, failure["cause"], failure)
            else:
                self.assertEqual(failure[key], value, failure)
