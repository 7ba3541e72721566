"""A real Slurm on this machine: a controller and a slurmd for each node, in a folder of their own."""
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import time

SKIPPED = 77


def skip_unless_there():
    """Ends with 77 where the machine has no Slurm, or may not start it."""
    missing = [name for name in ("slurmctld", "slurmd", "sbatch") if shutil.which(name) is None]
    if missing or os.geteuid() != 0:
        print(f"{', '.join(missing)} not installed (Debian: slurmctld, slurmd, slurm-client)" if missing
              else "root is needed to start slurmctld and slurmd", file=sys.stderr)
        sys.exit(SKIPPED)


class Slurm:
    """With the nodes of `partitions`, by name; `lines`: more of slurm.conf, `gpus`: of each node. Ends with what it started."""

    def __init__(self, folder: pathlib.Path, partitions: dict, lines: str, state="UP", gpus=0):
        self.folder, self.processes = folder, []
        host = socket.gethostname().split(".")[0]
        with socket.socket() as any_port:
            any_port.bind(("127.0.0.1", 0))
            port = any_port.getsockname()[1]
        conf = [f"ClusterName=test\nSlurmctldHost={host}(127.0.0.1)\nSlurmUser=root\nSlurmdUser=root\nAuthType=auth/none\n"
                f"CredType=cred/none\nStateSaveLocation={folder}/state\nSlurmdSpoolDir={folder}/spool-%n\n"
                f"SlurmctldPidFile={folder}/ctld.pid\nSlurmdPidFile={folder}/%n.pid\nSlurmctldPort={port}\n"
                "ProctrackType=proctrack/pgid\nTaskPlugin=task/none\nSelectType=select/cons_tres\nSelectTypeParameters=CR_Core\n"
                "PriorityType=priority/basic\nAccountingStorageType=accounting_storage/none\nJobAcctGatherType=jobacct_gather/none\n"
                f"SlurmdParameters=config_overrides\nMpiDefault=none\nReturnToService=2\nKillWait=1\n{lines}"]
        if gpus:
            conf.append("GresTypes=gpu")
            for n in range(gpus):
                (folder / f"gpu{n}").touch()  # in place of a device
            (folder / "gres.conf").write_text(f"Name=gpu File={folder}/gpu[0-{gpus - 1}]\n", encoding="utf-8")
        nodes = [node for names in partitions.values() for node in names]
        for n, node in enumerate(nodes):
            conf.append(f"NodeName={node} NodeHostname={host} NodeAddr=127.0.0.1 Port={port + 1 + n} CPUs=1 State=UNKNOWN"
                        + (f" Gres=gpu:{gpus}" if gpus else ""))
        for name, names in partitions.items():
            conf.append(f"PartitionName={name} Nodes={','.join(names)} MaxTime=UNLIMITED State={state}")
        (folder / "state").mkdir()
        (folder / "slurm.conf").write_text("\n".join(conf) + "\n", encoding="utf-8")
        self.environment = {**os.environ, "SLURM_CONF": str(folder / "slurm.conf")}
        try:
            self.start(nodes)
        except BaseException:
            self.stop()
            raise

    def start(self, nodes):
        self.spawn("slurmctld", "-c", "-D")
        time.sleep(2)
        for node in nodes:
            self.spawn("slurmd", "-D", "-N", node)
        for _ in range(60):
            states = self.call("sinfo", "--Node", "--noheader", "--format=%T").split()
            if states and all(s == "idle" for s in states):
                return
            time.sleep(1)
        raise RuntimeError(f"nodes did not come up: {sorted(set(states))}")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def spawn(self, *words):
        with open(self.folder / f"{words[-1]}.log", "wb") as log:
            self.processes.append(subprocess.Popen(words, env=self.environment, stdout=log, stderr=log))

    def call(self, *words, **more):
        return subprocess.run(words, env=self.environment, check=True, stdout=subprocess.PIPE, text=True, **more).stdout

    def stop(self):
        for process in reversed(self.processes):
            process.terminate()
        for process in self.processes:
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
