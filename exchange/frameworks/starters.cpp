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

/// The framework's program, with the user's own in it where it is known.
std::string program_of(const LauncherFile& file, const std::string& program) {
  constexpr std::string_view kVariable = "$TRAIN_PROGRAM";
  std::string text = file.program;
  const std::size_t at = text.find(kVariable);
  if (at != std::string::npos && !program.empty()) text.replace(at, kVariable.size(), program);
  return text;
}

/// What one node runs, as a line of bash. It finds NODE_RANK, HEAD_NODE, CONFIG and CHECKPOINTS.
std::string node_command(const LauncherFile& file, const LaunchLayout& l, const std::string& id,
                         const std::string& own) {
  const std::string program = program_of(file, own);
  const std::string source = file.sourced ? "source \"$CONFIG\"; " : "";
  switch (file.launcher) {
    case Launcher::torchrun: {
      const std::string where = l.nodes == 1
                                    ? "--standalone"
                                    : fmt::format(
                                          "--nnodes={} --node-rank=\"$NODE_RANK\" --rdzv-id=\"{}\" "
                                          "--rdzv-backend=c10d --rdzv-endpoint=\"$HEAD_NODE:{}\"",
                                          l.nodes, id, kPort);
      return fmt::format("{}exec torchrun {} --nproc-per-node={} {}", source, where,
                         l.accelerators_per_node, program);
    }
    case Launcher::accelerate:
      return fmt::format(
          "exec accelerate launch --config_file \"$CONFIG\" --machine_rank \"$NODE_RANK\" "
          "--main_process_ip \"$HEAD_NODE\" --main_process_port {} {}",
          kPort, program);
    case Launcher::python:
      break;
  }
  if (l.is_tpu()) return "exec python3 " + program;  // JAX finds the hosts by itself
  return fmt::format(
      "export JAX_COORDINATOR_IP=\"$HEAD_NODE\" JAX_COORDINATOR_PORT={} NNODES={} NODE_RANK; "
      "exec python3 {}",
      kPort, l.nodes, program);
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

// Words of the program are split on purpose.
constexpr const char* kSplit = "# shellcheck disable=SC1090,SC2086\n";

}  // namespace

std::string start_script(const LauncherFile& file, const LaunchLayout& l,
                         const std::string& program) {
  std::string text = "#!/bin/bash\n";
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
  return text + kSplit + node_command(file, l, kubernetes_name(l.name), program) + '\n';
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
      "\n# The node's end, or that of the job's time, is announced: the processes save and end, "
      "and\n"
      "# Slurm starts the job again from their checkpoint.\n"
      "start_again() {{\n"
      "  trap '' USR1 TERM\n"
      "  kill -TERM \"$step\"\n"
      "  wait \"$step\" || true\n"
      "  scontrol requeue \"$SLURM_JOB_ID\"\n"
      "  exit 0\n"
      "}}\n"
      "trap start_again USR1 TERM\n"
      "# shellcheck disable=SC2016\n"
      "srun --kill-on-bad-exit=1 bash -c {} &\n"
      "step=$!\n"
      "wait \"$step\"\n",
      shell_word("NODE_RANK=$SLURM_NODEID; " + node_command(file, l, "$SLURM_JOB_ID", program)));
  return text;
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
  const std::string prepare =
      "NODE_RANK=${RANK:-0}; HEAD_NODE=${MASTER_ADDR:-localhost}; CHECKPOINTS=$RECKON_JOB_DIR; "
      "export NODE_RANK HEAD_NODE CHECKPOINTS; mkdir -p \"$CHECKPOINTS\"; ";
  container.command = {"bash", "-c",
                       prepare + node_command(file, l, kubernetes_name(l.name), program)};
  container.metrics.clear();
  for (const auto& [name, value] : file.environment) container.env.try_emplace(name, value);
  container.env["CONFIG"] = fmt::format("{}/{}", kMountedFiles, file.name);
  artifact.container = std::move(container);
  how.files.emplace_back(file.name, file.text);
  return kubernetes_manifests(artifact, how, places);
}

}  // namespace reckon
