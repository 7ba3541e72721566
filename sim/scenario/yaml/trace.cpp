#include <fmt/format.h>

#include "sim/scenario/yaml/fields.h"

// `trace:` and `cluster.scheduler:`.
namespace reckon {
namespace {

constexpr double kMostLoad = 100;  // times the cluster
constexpr double kMostJobs = 1e8;

const YamlNode::Entry* below(const YamlNode& root, std::string_view block, std::string_view key) {
  const auto* entry = root.find(block);
  return entry == nullptr ? nullptr : entry->value.find(key);
}

/// Which policies answer which question: those of FGD place pods that stay, Gavel's needs its
/// table, and the two others durations.
void check_policy(Reader& reader, const YamlNode& root, const TraceSpec& trace,
                  SchedulingPolicy policy) {
  const auto* at = below(root, "cluster", "scheduler")->value.find("policy");
  if (at == nullptr) return;  // reported
  const bool places = policy >= SchedulingPolicy::fgd;
  const bool gavel = policy == SchedulingPolicy::fifo_perf;
  if (places != trace.load.has_value())
    reader.error(at->value.at,
                 places ? fmt::format("policy {} places pods that stay, and needs trace.load",
                                      to_text(policy))
                        : fmt::format("trace.load does not go with policy {}", to_text(policy)),
                 places ? "example: load: 130%"
                        : "with a load pods stay: policies fgd, best_fit, dot_product, "
                          "gpu_packing, gpu_clustering, random");
  if (gavel != (trace.format == TraceFormat::gavel))
    reader.error(at->value.at, "policy fifo_perf and format gavel need each other",
                 "jobs of Gavel's lists have steps, whose pace its table of throughputs says");
}

}  // namespace

const Fields<TraceSpec>& trace_spec_fields() {
  using T = TraceSpec;
  static const Fields<T> table{
      required(text_field("file", &T::file, "Recorded jobs, relative to this file.", "jobs.csv")),
      required(word_field("format", &T::format, "Whose layout the file has.", "csv")),
      text_field("nodes", &T::nodes,
                 "List of nodes instead of cluster.pools, in the layout of openb (sn, cpu_milli, "
                 "memory_mib, gpu, model).",
                 "openb_node_list_gpu_node.csv"),
      text_field("throughputs", &T::throughputs,
                 "Steps per second by kind of accelerator and job type, as Gavel's JSON has them.",
                 "simulation_throughputs.json"),
      text_field("directory", &T::directory,
                 "Where file, nodes and throughputs are looked for first.", "../traces"),
      number_field("load", &T::load, Form{Form::Kind::fraction, 0, kMostLoad, true},
                   "GPUs that pods ask for over those of the cluster: pods are shuffled, drawn "
                   "again up to this load, and stay. Default: jobs come and go as recorded.",
                   "130%"),
      number_field("running", &T::running, whole(0, kMostJobs),
                   "Jobs at the head of the file that ran already; default: 0.", "16"),
      number_field("window", &T::window, whole(1, kMostJobs),
                   "Jobs behind them that are measured; default: all.", "200"),
  };
  return table;
}

const Fields<SchedulerSpec>& scheduler_fields() {
  using S = SchedulerSpec;
  static const Fields<S> table{
      required(word_field("policy", &S::policy,
                          "fifo: in order of arrival; easy_backfill: later jobs start where they "
                          "do not delay the first that waits; fifo_perf: Gavel's; the others "
                          "choose nodes for pods that stay.",
                          "fgd")),
      number_field("time_per_iteration", &S::time_per_iteration, duration_above_zero(),
                   "Of Gavel: a round; default: 6min.", "6min"),
      number_field("minimum_time_between_allocation_resets",
                   &S::minimum_time_between_allocation_resets, duration_from_zero(),
                   "Of Gavel: between two decisions at least; default: 32min.", "32min"),
  };
  return table;
}

void check_trace(Reader& reader, const YamlNode& root, const Scenario& scenario) {
  const auto* scheduler = below(root, "cluster", "scheduler");
  if (!scenario.trace) {
    if (scheduler != nullptr && !root.has("trace") && !reader.misspelt("trace"))
      reader.error(scheduler->key_at, "cluster.scheduler is of a trace, and there is none",
                   "example: trace: {file: jobs.csv, format: csv}");
    return;
  }
  if (root.has("workload") || root.has("jobs")) return;  // reported
  const SourcePlace at = root.find("trace")->key_at;
  if (scheduler == nullptr && root.has("cluster")) {
    reader.error(at, "a trace needs cluster.scheduler",
                 "example: cluster: {scheduler: {policy: fifo}}");
    return;
  }
  for (const std::string_view key : {"serving", "disruptions", "plan"})
    if (const auto* beside = root.find(key))
      reader.error(beside->key_at, fmt::format("'{}' cannot stand beside 'trace'", key),
                   "recorded jobs run on nodes that stay, and nothing is bought for them");
  if (!scenario.cluster.scheduler) return;
  const TraceSpec& trace = *scenario.trace;
  const bool pools =
      below(root, "cluster", "pools") != nullptr || below(root, "cluster", "scale_tier") != nullptr;
  if (pools == !trace.nodes.empty())
    reader.error(at,
                 pools ? "trace.nodes cannot stand beside cluster.pools"
                       : "a trace needs cluster.pools, or a list of nodes",
                 "example: nodes: openb_node_list_gpu_node.csv");
  if ((trace.format == TraceFormat::gavel) == trace.throughputs.empty())
    reader.error(at,
                 trace.throughputs.empty() ? "format gavel needs throughputs"
                                           : "throughputs are of format gavel",
                 "example: throughputs: simulation_throughputs.json");
  check_policy(reader, root, trace, scenario.cluster.scheduler->policy);
}

}  // namespace reckon
