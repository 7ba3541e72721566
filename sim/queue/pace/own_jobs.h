#pragma once
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "sim/base/diagnostic.h"
#include "sim/queue/job_list.h"
#include "sim/queue/lists/trace_source.h"
#include "sim/queue/pace/placement_pace.h"

// What a scenario says of the pace of its jobs: of recorded ones, of a class, and of trainings of
// one's own, for which the step model is asked.
namespace reckon {

/// A class's jobs of one size.
struct ClassPace {
  std::optional<Seconds> length;  // at pace 1; nullopt: drawn by the class's law
  PlacementPace pace;
};
using ClassPaces = std::map<int, ClassPace>;  // by GPUs; empty: alike everywhere

/// How long the training of a scenario file takes on the cluster, whose pool has as many nodes as
/// it takes, from the start on nodes that are there to its end, while nothing fails. Errors: what
/// the file says wrong, or why it cannot run there.
using OwnJobTime =
    std::function<Expected<Seconds>(const std::filesystem::path& file, const ClusterSpec& on)>;

/// The same of a scenario of one training that is read already.
using OwnTrainingTime =
    std::function<Expected<Seconds>(const ScenarioFile& training, const ClusterSpec& on)>;

/// What only the catalog knows. What needs one that is not there is an error.
struct OwnTimes {
  OwnJobTime of_file;
  OwnTrainingTime of_training;
};

/// `pools`: names of those with GPUs, in the order of PlacementPace. What is wrong is in `source`;
/// `notes` has pools on which a job cannot run, and why.
class PaceLoader {
 public:
  PaceLoader(const ScenarioFile& file, std::vector<std::string> pools, const OwnTimes& times,
             TraceSource& source, std::vector<std::string>& notes)
      : file_(file), pools_(std::move(pools)), times_(times), source_(source), notes_(notes) {}

  /// Of the jobs of a recorded list, as `trace` says or by their training; false: reported.
  bool set_list(JobList& list);
  ClassPaces of_class(const ArrivalClassSpec& kind);
  /// Of a job of `jobs:`; nullopt: alike everywhere, or reported.
  std::optional<ClassPace> of_job(const JobSpec& job);
  /// Of a training: its file, where the scenario says it, and who asks for it ("class bert").
  struct Training {
    std::filesystem::path file;
    std::string at, whose;
    const ScenarioFile* scenario = nullptr;  // in place of the file
  };
  std::optional<ClassPace> of_training(const Training& training, int gpus);

 private:
  std::optional<PlacementPace> of_list();  // nullopt: alike everywhere
  PlacementPace as_said(const PaceSpec& pace, const std::string& at);
  std::vector<double> seconds_on(const PoolSpec& pool, const Training& training, int gpus);
  int nodes_per_leaf() const;

  const ScenarioFile& file_;
  std::vector<std::string> pools_;
  const OwnTimes& times_;
  TraceSource& source_;
  std::vector<std::string>& notes_;
};

}  // namespace reckon
