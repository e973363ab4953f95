"""Debian's Slurm as a cluster of this machine alone: one node, two GPUs that are none, two partitions.

Jobs of partition `high` preempt those of `low`, which are queued again.
"""

import os
import pathlib
import shutil
import signal
import socket
import stat
import subprocess
import sys
import time

from tests.e2e import harness

# Where Debian has daemons.
PATH = "/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/bin:/bin"
PROGRAMS = ["munged", "slurmctld", "slurmd", "sbatch", "squeue", "scontrol", "scancel"]
NODE = "plumbline-test-node"
GPUS = 2

CONFIGURATION = """\
ClusterName=plumbline-test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller_port}
SlurmdPort={node_port}
# Daemons of a test are nobody else's to talk to.
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
CredType=cred/munge
# A job that is queued again waits for the end of its credential.
AuthInfo=socket={folder}/munge.socket,cred_expire=5
StateSaveLocation={folder}/controller
SlurmdSpoolDir={folder}/node
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MailProg=/bin/true
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
# The node has what this file says, not what the machine has.
SlurmdParameters=config_overrides
ReturnToService=2
GresTypes=gpu
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
# Without it a job's script hears nothing before its processes are killed.
SlurmctldParameters=preempt_send_user_signal
{requeue}
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=1,sched_min_interval=0,bf_interval=1,batch_sched_delay=0
KillWait=5
MinJobAge=3600
SlurmctldTimeout=60
SlurmdTimeout=120
NodeName={node} NodeHostname={host} NodeAddr=127.0.0.1 CPUs=16 Sockets=1 CoresPerSocket=16 \
ThreadsPerCore=1 RealMemory=16000 Gres=gpu:fake:{gpus} State=UNKNOWN
PartitionName=low Nodes={node} Default=YES PriorityTier=1 PreemptMode=REQUEUE GraceTime=60 \
MaxTime=INFINITE State=UP
PartitionName=high Nodes={node} PriorityTier=10 PreemptMode=OFF MaxTime=INFINITE State=UP
"""


def why_not():
    """What this machine lacks, or None."""
    for program in PROGRAMS:
        if shutil.which(program, path=PATH) is None:
            return f"Slurm is not installed: there is no {program}"
    if os.geteuid() != 0:
        return "Slurm's daemons need root"
    probe = f"/tmp/plumbline-device-{os.getpid()}"
    try:
        os.mknod(probe, 0o600 | stat.S_IFCHR, os.makedev(1, 3))
        os.remove(probe)
    except OSError as error:
        return f"no device files can be made for fake GPUs: {error.strerror}"
    return None


def _free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    try:
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
    finally:
        for each in sockets:
            each.close()


class SlurmCase(harness.Case):
    """A test with a cluster of its own, whose jobs and daemons end with it."""

    # Of slurm.conf: "RequeueExit=85", or nothing.
    REQUEUE = ""

    def setUp(self):
        reason = why_not()
        if reason:
            self.skipTest(reason)
        super().setUp()
        # A test that takes too long is told so: what Slurm has started must end with it too.
        signal.signal(signal.SIGTERM, lambda *_: sys.exit("told to end"))
        # munged wants its socket where everybody could find it.
        os.chmod(self.folder, 0o755)
        self.slurm = self.path("slurm")
        for name in ("", "controller", "node", "devices"):
            os.mkdir(os.path.join(self.slurm, name), 0o755)
        self.environment["SLURM_CONF"] = os.path.join(self.slurm, "slurm.conf")
        self.environment["PATH"] = PATH
        self._configure()
        self.addCleanup(self._end_jobs)
        self._start_daemons()

    def _configure(self):
        folder = pathlib.Path(self.slurm)
        controller_port, node_port = _free_ports(2)
        (folder / "slurm.conf").write_text(
            CONFIGURATION.format(
                folder=folder,
                host=socket.gethostname().split(".")[0],
                node=NODE,
                gpus=GPUS,
                controller_port=controller_port,
                node_port=node_port,
                requeue=self.REQUEUE,
            )
        )
        # A GPU's file must be a character device: these are all /dev/null.
        for gpu in range(GPUS):
            os.mknod(folder / "devices" / f"gpu{gpu}", 0o666 | stat.S_IFCHR, os.makedev(1, 3))
        (folder / "gres.conf").write_text(
            f"NodeName={NODE} Name=gpu Type=fake File={folder}/devices/gpu[0-{GPUS - 1}]\n"
        )
        key = folder / "munge.key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o400)

    def _start_daemons(self):
        self.start(
            shutil.which("munged", path=PATH), "--foreground", f"--key-file={self.slurm}/munge.key",
            f"--socket={self.slurm}/munge.socket", f"--pid-file={self.slurm}/munged.pid",
            f"--log-file={self.slurm}/munged.log", f"--seed-file={self.slurm}/munged.seed",
        )  # fmt: skip
        self.wait_until(lambda: os.path.exists(f"{self.slurm}/munge.socket"), "munged listens")
        self.controller = self.start_controller()
        self.start(shutil.which("slurmd", path=PATH), "-D", "-f", self.conf(), "-N", NODE)
        # That a node calls itself idle proves little: a job does.
        ready = self.path("slurm-ready")
        self.sbatch("--wrap", f"touch {ready}")
        self.wait_until(lambda: os.path.exists(ready), "Slurm runs a job")

    def start_controller(self):
        return self.start(shutil.which("slurmctld", path=PATH), "-D", "-f", self.conf())

    def conf(self):
        return self.environment["SLURM_CONF"]

    def wait_until(self, condition, what):
        """As the harness', and where it is in vain, what everybody said last."""
        try:
            return harness.wait_until(condition, what)
        except AssertionError as error:
            logs = [
                f"== {log}\n" + "\n".join(log.read_text(errors="replace").splitlines()[-15:])
                for log in sorted(pathlib.Path(self.folder).rglob("*.log"))
                if self.path("server") not in str(log)  # Those are a database's.
            ]
            raise AssertionError("\n".join([str(error), *logs])) from error

    def run_slurm(self, *command):
        """A program of Slurm's."""
        return harness.Ended(
            subprocess.run(
                command,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                stdin=subprocess.DEVNULL,
                text=True,
                env=self.environment,
                cwd=self.folder,
                timeout=harness.DEADLINE_SECONDS,
                check=False,
            )
        )

    def sbatch(self, *options):
        """Submits: the job's number."""
        ended = self.run_slurm(
            "sbatch", "--parsable", f"--output={self.path('job-%j.log')}", *options
        )
        self.assertEqual(ended.status, 0, ended)
        return ended.out.strip()

    def job(self, job):
        """What Slurm says of a job, or of one of an array, by name."""
        ended = self.run_slurm("scontrol", "--oneliner", "show", "job", job)
        self.assertEqual(ended.status, 0, ended)
        words = [word.split("=", 1) for word in ended.out.split("\n")[0].split()]
        return {word[0]: word[1] for word in words if len(word) == 2}

    def processes_of_jobs(self):
        """PIDs of everything that runs in a job of this cluster."""
        return self._processes(in_job=True)

    def _processes(self, in_job):
        """PIDs of what has this cluster's configuration: in its jobs, or what Slurm has started at all."""
        mine = f"SLURM_CONF={self.conf()}".encode()
        daemons = {process.pid for process in self.processes}
        found = []
        for folder in pathlib.Path("/proc").iterdir():
            if not folder.name.isdigit() or int(folder.name) in daemons:
                continue
            try:
                variables = (folder / "environ").read_bytes().split(b"\0")
            except OSError:
                continue  # It has ended.
            is_of_job = any(variable.startswith(b"SLURM_JOB_ID=") for variable in variables)
            if mine in variables and (is_of_job or not in_job):
                found.append(int(folder.name))
        return found

    def _end_jobs(self):
        """Slurm's, and those of a Slurm that no longer can: they are not the test's children."""
        if not hasattr(self, "controller"):
            return
        self.run_slurm("scancel", f"--user={os.geteuid()}")
        patience = time.monotonic() + 5
        while left := self._processes(in_job=False):
            if time.monotonic() > patience:
                for pid in left:
                    try:
                        os.kill(pid, signal.SIGKILL)
                    except ProcessLookupError:
                        pass
            time.sleep(0.05)
