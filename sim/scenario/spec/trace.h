#pragma once
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "sim/base/quantity.h"
#include "sim/base/words.h"
#include "sim/scenario/spec/scheduler.h"

// Jobs of many users that share a cluster: recorded ones, and ones that are drawn.
namespace reckon {

/// Whose layout a file of jobs has (sim/queue reads them).
enum class TraceFormat { openb, gavel, philly, helios, sia, csv, slurm, kueue };
constexpr auto words_of(TraceFormat) {
  return std::array{Word<TraceFormat>{"openb", TraceFormat::openb},
                    Word<TraceFormat>{"gavel", TraceFormat::gavel},
                    Word<TraceFormat>{"philly", TraceFormat::philly},
                    Word<TraceFormat>{"helios", TraceFormat::helios},
                    Word<TraceFormat>{"sia", TraceFormat::sia},
                    Word<TraceFormat>{"csv", TraceFormat::csv},
                    Word<TraceFormat>{"slurm", TraceFormat::slurm},
                    Word<TraceFormat>{"kueue", TraceFormat::kueue}};
}

/// How fast jobs run where: `pace` and `across_leaves` as written.
struct PaceSpec {
  std::map<std::string, double> by_pool;  // factor over that for which lengths are said; others: 1
  std::optional<double> across_leaves;    // factor besides, on nodes of several leaves
  bool given() const { return !by_pool.empty() || across_leaves.has_value(); }
};

/// What a pod of a job asks for, where Karpenter makes the nodes.
struct PodShapeSpec {
  int gpus = 1;
  double cpu = 0;
  Bytes memory{};
  /// Its annotation karpenter.sh/do-not-disrupt; not given: as cluster.karpenter has it.
  std::optional<bool> do_not_disrupt{};
};

/// `trace:` as written.
struct TraceSpec {
  std::string file;
  TraceFormat format = TraceFormat::csv;
  std::string nodes;        // the list of nodes in place of cluster.pools; "": the pools
  std::string throughputs;  // format gavel: the table of steps per second
  std::string directory;    // where the three files above are looked for first; "": not given
  /// Requested GPUs over the cluster's that arrive one after the other and stay (1.3 = 130 %); not
  /// given: jobs arrive and leave as recorded.
  std::optional<double> load;
  int running = 0;                           // jobs at the head of the file that ran already
  std::optional<int> window;                 // jobs behind them that are measured; not given: all
  std::map<std::string, Seconds> durations;  // format sia: of a job, by its application
  PaceSpec pace{};
};

/// A search over hyper-parameters: each job of the class is so many trials, submitted together, and
/// some of them are stopped early.
enum class EarlyStopping { none, asha, median };
constexpr auto words_of(EarlyStopping) {
  using E = EarlyStopping;
  return std::array{Word<E>{"none", E::none}, Word<E>{"asha", E::asha},
                    Word<E>{"median", E::median}};
}
struct TrialsSpec {
  int count = 1;
  EarlyStopping stop = EarlyStopping::none;
  int eta = 3;              // of asha: one in so many goes on from a rung
  double least = 1.0 / 27;  // share of a full run, before which no trial may be stopped
  double noise = 0.2;       // of an early result, in standard deviations of the final ones
};

/// Jobs of one kind. Of a list each value is as likely as the next, of a map by its share.
struct ArrivalClassSpec {
  std::string name;
  double jobs_per_hour = 0;    // on average over the week
  std::map<int, double> gpus;  // of a job -> share
  TimeLaw duration = Seconds{};
  double limit = 0;  // factor: time asked for over the time taken; 0: nothing is asked
  std::map<std::string, double> teams;  // -> share; empty: no team
  int users = 1;                        // of each team
  std::string queue;                    // partition of Slurm, ClusterQueue of Kueue; "": none said
  std::string qos;                      // of Slurm
  int priority = 0;                     // of Kueue and Kubernetes
  std::string required_topology, preferred_topology;  // of Kueue: the label of a level; "": none
  std::optional<TrialsSpec> trials;
  std::string job{};  // file of a training: its length and pace; "": `duration` and `pace`
  PaceSpec pace{};
  std::string resource{};             // devices that GPUs are cut into; "": whole GPUs
  std::optional<PodShapeSpec> pod{};  // not given: one pod with all GPUs
};

/// `arrivals:` as written.
struct ArrivalsSpec {
  Seconds period{};           // in which jobs are submitted
  Seconds warm_up{};          // jobs submitted before it are not measured
  std::vector<double> hours;  // rate by hour of the day (24) or week (168, from Monday), relative
  std::string profile;        // file of recorded jobs that such rates are counted from; "": none
  std::optional<TraceFormat> profile_format;
  std::vector<ArrivalClassSpec> classes;
};

}  // namespace reckon
