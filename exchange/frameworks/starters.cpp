#include "exchange/frameworks/starters.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "exchange/refusals.h"
#include "sim/base/text/shell_word.h"

namespace reckon {
namespace {

constexpr int kPort = 29500;  // torchrun's and accelerate's own

bool takes_program(const LauncherFile& file) {
  return file.program.find("$TRAIN_PROGRAM") != std::string::npos;
}

/// The framework's program with the user's own words: in it, or, where it starts none, behind its
/// arguments.
std::string program_of(const LauncherFile& file, const std::string& own) {
  constexpr std::string_view kVariable = "$TRAIN_PROGRAM";
  std::string text = file.program;
  if (own.empty()) return text;
  const std::size_t at = text.find(kVariable);
  return at == std::string::npos ? text + ' ' + own : text.replace(at, kVariable.size(), own);
}

std::string launcher_command(const LauncherFile& file, const LaunchLayout& l, const std::string& id,
                             const std::string& own) {
  const std::string program = program_of(file, own);
  switch (file.launcher) {
    case Launcher::torchrun: {
      const std::string where = l.nodes == 1
                                    ? "--standalone"
                                    : fmt::format(
                                          "--nnodes={} --node-rank=\"$NODE_RANK\" --rdzv-id=\"{}\" "
                                          "--rdzv-backend=c10d --rdzv-endpoint=\"$HEAD_NODE:{}\"",
                                          l.nodes, id, kPort);
      return fmt::format("torchrun {} --nproc-per-node={} {}", where, l.accelerators_per_node,
                         program);
    }
    case Launcher::accelerate:
      return fmt::format(
          "accelerate launch --config_file \"$CONFIG\" --machine_rank \"$NODE_RANK\" "
          "--main_process_ip \"$HEAD_NODE\" --main_process_port {} {}",
          kPort, program);
    case Launcher::python:
      break;
  }
  return "python3 " + program;
}

/// torchrun, and accelerate around it, kill their ranks 30 s after a SIGTERM (shutdown_timeout in
/// pytorch/pytorch 001077cbc0f3, torch/distributed/elastic/agent/server/local_elastic_agent.py). So
/// the shell keeps SIGTERM to itself and signals the ranks, which are the launcher's children: they
/// have all of the notice. Before there are any, the launcher is told to end.
constexpr const char* kTellRanks = R"(tell() {
  told=yes
  local file stat found=no
  for file in /proc/[0-9]*/stat; do
    { read -r stat < "$file"; } 2> /dev/null || continue
    [[ ${stat##*) } == ?" $launcher "* ]] || continue
    kill -TERM "${stat%% *}" && found=yes
  done
  [ "$found" = yes ] || kill -TERM "$launcher" || true
}
)";
constexpr const char* kTellProgram = R"(tell() {
  told=yes
  kill -TERM "$launcher" || true
}
)";

/// What one node runs, as lines of bash. They find NODE_RANK, HEAD_NODE, CONFIG and CHECKPOINTS,
/// and end with the launcher's exit code. SIGTERM, SIGINT and SIGUSR1 are a notice; the launcher
/// and the ranks ignore SIGUSR1, which Slurm may send to all processes of a step.
std::string node_commands(const LauncherFile& file, const LaunchLayout& l, const std::string& id,
                          const std::string& own) {
  std::string text = file.sourced ? "source \"$CONFIG\"\n" : "";
  // On TPUs JAX finds the hosts by itself.
  if (file.launcher == Launcher::python && !l.is_tpu())
    text += fmt::format(
        "export JAX_COORDINATOR_IP=\"$HEAD_NODE\" JAX_COORDINATOR_PORT={} NNODES={} NODE_RANK\n",
        kPort, l.nodes);
  text += "# A notice (SIGTERM) is for the training processes: they save and end.\n";
  text += file.launcher == Launcher::python ? kTellProgram : kTellRanks;
  text += fmt::format("(trap '' USR1; exec {}) &\n", launcher_command(file, l, id, own));
  return text +
         "launcher=$!\n"
         "trap tell TERM INT USR1\n"
         "told=yes\n"
         "while [ \"$told\" = yes ]; do  # a notice interrupts the wait\n"
         "  told=no\n"
         "  code=0\n"
         "  wait \"$launcher\" || code=$?\n"
         "done\n"
         "exit \"$code\"\n";
}

/// The directory of checkpoints, the user's program, the configuration, the environment.
std::string preparation(const LauncherFile& file, const std::string& program) {
  std::string text = "CHECKPOINTS=${CHECKPOINTS:-checkpoints}  # a directory that all nodes have\n";
  if (takes_program(file) && program.empty())
    text += ": \"${TRAIN_PROGRAM:?the training program with its arguments, as in train.py}\"\n";
  text += fmt::format("mkdir -p \"$CHECKPOINTS\"\nCONFIG=$CHECKPOINTS/{}\n", file.name);
  text += fmt::format("cat > \"$CONFIG\" << 'END_OF_CONFIG'\n{}END_OF_CONFIG\n", file.text);
  for (const auto& [name, value] : file.environment)
    text += fmt::format("export {}={}\n", name, shell_word(value));
  return text;
}

/// A notice for the batch script becomes one for the processes of its only step, whose number is 0
/// in each start (batch_requeue_fini() begins to count anew). srun itself would make SIGKILL of
/// SIGTERM (src/srun/signals.c, _forward_signal()); and a step that gets SIGTERM counts as
/// cancelled (src/slurmd/slurmstepd/req.c, _handle_signal_container()). proctrack/cgroup signals
/// the task alone, the other plugins signal all its processes. [SchedMD/slurm 26.05.3]
constexpr const char* kRequeue = R"(
# The node's end, or that of the job's time, is announced: the processes save and end, and
# Slurm starts the job again from their checkpoint.
start_again() {
  trap '' USR1 TERM
  scancel --signal=USR1 "$SLURM_JOB_ID.0" || kill "$step"
  wait "$step" || true
  scontrol requeue "$SLURM_JOB_ID"
  exit 0
}
trap start_again USR1 TERM
srun --kill-on-bad-exit=1 bash "$NODE" &
step=$!
wait "$step"
)";

}  // namespace

std::string start_script(const LauncherFile& file, const LaunchLayout& l,
                         const std::string& program) {
  // Words of the program are split on purpose, and tell() is called by a trap.
  std::string text = "#!/bin/bash\n# shellcheck disable=SC1090,SC2086,SC2317\n";
  text += l.nodes == 1 ? "# Starts all processes of the job.\n"
                       : fmt::format(
                             "# Starts the processes of one node. On each of {} nodes: "
                             "NODE_RANK=0 and up, HEAD_NODE the name of the first.\n",
                             l.nodes);
  text += "set -euo pipefail\n";
  if (l.nodes == 1)
    text += "NODE_RANK=0\nHEAD_NODE=localhost\n";
  else
    text +=
        ": \"${NODE_RANK:?number of this node, from 0}\"\n"
        ": \"${HEAD_NODE:?name of the first node}\"\n";
  text += preparation(file, program);
  text += "export NODE_RANK HEAD_NODE CONFIG CHECKPOINTS\n";
  return text + node_commands(file, l, kubernetes_name(l.name), program);
}

std::string slurm_script(const LauncherFile& file, const LaunchLayout& l,
                         const std::string& program) {
  constexpr double kShortest = 60, kLongest = 65535;  // sbatch --signal
  const int notice = int(std::clamp(std::ceil(l.notice.count()), kShortest, kLongest));
  std::string text = fmt::format(
      "#!/bin/bash\n"
      "#SBATCH --job-name={}\n"
      "#SBATCH --nodes={}\n"
      "#SBATCH --ntasks-per-node=1\n"
      "#SBATCH --gpus-per-node={}\n"
      "#SBATCH --exclusive\n"
      "#SBATCH --requeue\n"
      "#SBATCH --open-mode=append\n"
      "#SBATCH --signal=B:USR1@{}\n"
      "set -euo pipefail\n",
      kubernetes_name(l.name), l.nodes, l.accelerators_per_node, notice);
  text += preparation(file, program);
  text +=
      "HEAD_NODE=$(scontrol show hostnames \"$SLURM_JOB_NODELIST\" | head -n 1)\n"
      "export HEAD_NODE CONFIG CHECKPOINTS\n";
  if (takes_program(file) && program.empty()) text += "export TRAIN_PROGRAM\n";
  text += fmt::format(
      "NODE=$CHECKPOINTS/start-node.sh\n"
      "cat > \"$NODE\" << 'END_OF_NODE'\n"
      "NODE_RANK=$SLURM_NODEID\n"
      "{}END_OF_NODE\n",
      node_commands(file, l, "$SLURM_JOB_ID", program));
  return text + kRequeue;
}

Expected<std::string> launcher_manifests(const LauncherFile& file, const LaunchLayout& l,
                                         const std::string& program, RunArtifact artifact,
                                         KubernetesExport how, const Places& places) {
  Refusals refused(one_of(how.as), places, l.job->path);
  if (how.as == JobShape::pytorchjob && file.launcher == Launcher::python)
    refused.add("cluster.pools", "a program that PyTorch's launcher does not start", "--as jobset");
  if (takes_program(file) && program.empty())
    refused.add("container", "a training program", "--program 'train.py --data /data'");
  if (!refused.empty()) return tl::unexpected(refused.take());
  // A pod a node, which starts the processes of all its accelerators.
  PlannedStrategy& strategy = artifact.plan.only_job().strategy;
  strategy.workers = l.nodes;
  strategy.accelerators_per_worker = l.accelerators_per_node;
  ContainerSpec container = artifact.container.value_or(ContainerSpec{});
  if (container.image.empty() || how.image != KubernetesExport{}.image) container.image = how.image;
  constexpr const char* kStart = "start.sh";
  container.command = {"bash", fmt::format("{}/{}", kMountedFiles, kStart)};
  container.metrics.clear();
  for (const auto& [name, value] : file.environment) container.env.try_emplace(name, value);
  container.env["CONFIG"] = fmt::format("{}/{}", kMountedFiles, file.name);
  artifact.container = std::move(container);
  how.files.emplace_back(file.name, file.text);
  how.files.emplace_back(
      kStart,
      "NODE_RANK=${RANK:-0} HEAD_NODE=${MASTER_ADDR:-localhost} CHECKPOINTS=$RECKON_JOB_DIR\n"
      "export NODE_RANK HEAD_NODE CHECKPOINTS\n"
      "mkdir -p \"$CHECKPOINTS\"\n" +
          node_commands(file, l, kubernetes_name(l.name), program));
  return kubernetes_manifests(artifact, how, places);
}

}  // namespace reckon
