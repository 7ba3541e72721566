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

/// `program`: words of bash. Where the framework starts a program of the user's, that program and
/// its arguments; "": whoever runs the script says it in TRAIN_PROGRAM, which is split at its
/// blanks. Else more arguments of the framework's own program.
/// A SIGTERM to the script, or to a pod, is passed on to the training processes alone.
std::string start_script(const LauncherFile& file, const LaunchLayout& layout,
                         const std::string& program);

/// A batch script that Slurm requeues. A notice (USR1 before the time limit, TERM at a preemption)
/// is passed on to the training processes as SIGTERM; they have LaunchLayout::notice to save.
std::string slurm_script(const LauncherFile& file, const LaunchLayout& layout,
                         const std::string& program);

/// Manifests of the plan (kubernetes_manifests) whose pods, one a node, start the launcher with the
/// configuration from their ConfigMap. `how.as` is jobset, pytorchjob, mpijob or trainjob,
/// `how.image` has the framework.
Expected<std::string> launcher_manifests(const LauncherFile& file, const LaunchLayout& layout,
                                         const std::string& program, RunArtifact artifact,
                                         KubernetesExport how, const Places& places);

}  // namespace reckon
