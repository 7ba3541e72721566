#pragma once
#include <array>
#include <string>

#include "exchange/frameworks/frameworks.h"
#include "exchange/kubernetes/kubernetes.h"
#include "sim/base/words.h"

// What starts the processes of a launcher's configuration, with the configuration in it.
namespace reckon {

/// script: bash, run on every node. slurm: for sbatch. The others: manifests.
enum class Starter { script, slurm, jobset, pytorchjob, mpijob, trainjob };
constexpr auto words_of(Starter) {
  return std::array{
      Word<Starter>{"script", Starter::script}, Word<Starter>{"slurm", Starter::slurm},
      Word<Starter>{"jobset", Starter::jobset}, Word<Starter>{"pytorchjob", Starter::pytorchjob},
      Word<Starter>{"mpijob", Starter::mpijob}, Word<Starter>{"trainjob", Starter::trainjob}};
}

/// `program`: the user's training program and its arguments, as words of bash, where the framework
/// starts one; "": whoever runs the script says it in TRAIN_PROGRAM, which is split at its blanks.
std::string start_script(const LauncherFile& file, const LaunchLayout& layout,
                         const std::string& program);

/// A batch script that Slurm requeues. A notice (USR1 before the time limit, TERM at a preemption)
/// is passed on to the processes as SIGTERM; they have LaunchLayout::notice to save.
std::string slurm_script(const LauncherFile& file, const LaunchLayout& layout,
                         const std::string& program);

/// Manifests of the plan (kubernetes_manifests) whose pods, one a node, start the launcher with the
/// configuration from their ConfigMap. `how.as` is jobset, pytorchjob, mpijob or trainjob,
/// `how.image` has the framework.
Expected<std::string> launcher_manifests(const LauncherFile& file, const LaunchLayout& layout,
                                         const std::string& program, RunArtifact artifact,
                                         KubernetesExport how, const Places& places);

}  // namespace reckon
