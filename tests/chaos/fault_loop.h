#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "chaos/faults.h"

// Faults at random on a job, until their time is over and the job is done.
namespace reckon::test {

/// All that is drawn rests on the first three.
struct FaultLoopOptions {
  std::uint64_t seed = 0;
  std::uint32_t kind = 0;   // of job
  std::uint32_t round = 0;  // which of its jobs
  Seconds faults_for{5};
  Seconds gap{0.4};       // between two faults, the mean
  Seconds patience{180};  // with the job, once no more come
  /// No others; none: all kinds.
  std::optional<Harm> only = std::nullopt;
};

/// How often each kind of fault struck.
using FaultTally = std::map<std::string, int>;

/// Throws Lost, with the faults that came before it.
FaultTally run_under_faults(Job& job, FaultCount& count, const FaultLoopOptions& options);

/// No more faults come: waits until the job is over, and checks it. Throws Lost.
void see_through(Job& job, Seconds patience, const std::function<void()>& look_after);

/// RECKON_CHAOS_SEED, RECKON_CHAOS_ROUND, RECKON_CHAOS_SECONDS, RECKON_CHAOS_KILLS; else
/// `otherwise`.
std::uint64_t chaos_seed(std::uint64_t otherwise);
std::uint32_t chaos_round(std::uint32_t otherwise);
Seconds chaos_duration(Seconds otherwise);
int chaos_kills(int otherwise);
/// RECKON_CHAOS_ONLY: a part of the names of the jobs that are wanted; else all are.
bool chaos_wants(const std::string& name);

}  // namespace reckon::test
