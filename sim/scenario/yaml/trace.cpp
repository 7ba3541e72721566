#include <fmt/format.h>

#include "sim/scenario/yaml/fields.h"
#include "sim/scenario/yaml/pace_fields.h"

// `trace:`, and what it and `arrivals:` need of `cluster.scheduler:`.
namespace reckon {
namespace {

constexpr double kMostLoad = 100;  // times the cluster
constexpr double kMostJobs = 1e8;
/// Keys of `jobs:` that need cluster.scheduler.
constexpr std::array<std::string_view, 15> kKeysOfScheduled{"gpus",
                                                            "duration",
                                                            "job",
                                                            "limit",
                                                            "pace",
                                                            "across_leaves",
                                                            "pod",
                                                            "user",
                                                            "team",
                                                            "resource",
                                                            "queue",
                                                            "qos",
                                                            "priority",
                                                            "podset-required-topology",
                                                            "podset-preferred-topology"};

const YamlNode::Entry* below(const YamlNode& root, std::string_view block, std::string_view key) {
  const auto* entry = root.find(block);
  return entry == nullptr ? nullptr : entry->value.find(key);
}

/// Which policies answer which question: those of FGD place pods that stay, Gavel's needs its
/// table, and the others durations. `trace`: null with arrivals.
void check_policy(Reader& reader, const YamlNode& root, const TraceSpec* trace,
                  SchedulingPolicy policy) {
  const auto* at = below(root, "cluster", "scheduler")->value.find("policy");
  if (at == nullptr) return;  // reported
  const bool places = places_pods(policy);
  const bool gavel = is_of_gavel(policy);
  if (trace == nullptr && (places || gavel))
    return reader.error(
        at->value.at,
        fmt::format("policy {} needs a trace, and the jobs are {}", to_text(policy),
                    root.has("jobs") ? "listed" : "drawn"),
        "without one: fifo, easy_backfill, sjf, srtf, las, slurm, kueue, kubernetes");
  if (trace == nullptr) return;
  if (places != trace->load.has_value())
    reader.error(at->value.at,
                 places ? fmt::format("policy {} places pods that stay, and needs trace.load",
                                      to_text(policy))
                        : fmt::format("trace.load does not go with policy {}", to_text(policy)),
                 places ? "example: load: 130%"
                        : "with a load pods stay: policies fgd, best_fit, dot_product, "
                          "gpu_packing, gpu_clustering, random");
  if (gavel != (trace->format == TraceFormat::gavel))
    reader.error(at->value.at,
                 gavel ? fmt::format("policy {} is of format gavel", to_text(policy))
                       : "format gavel needs a policy of Gavel",
                 gavel
                     ? "jobs of Gavel's lists have steps, whose pace its table of throughputs says"
                     : "policies fifo_perf, max_min_fairness, max_min_fairness_perf, "
                       "max_min_fairness_water_filling_perf, finish_time_fairness, "
                       "finish_time_fairness_perf, min_total_duration, min_total_duration_perf");
}

void check_scheduler_blocks(Reader& reader, const YamlNode& scheduler, const SchedulerSpec& spec) {
  const auto need = [&](std::string_view key, bool there, SchedulingPolicy policy,
                        std::string hint) {
    const bool asked = spec.policy == policy;
    const auto* block = scheduler.find(key);
    if (asked && !there && !hint.empty() && block == nullptr && !reader.misspelt(key))
      reader.error(scheduler.find("policy")->value.at,
                   fmt::format("policy {} needs the block '{}'", to_text(policy), key), hint);
    if (!asked && block != nullptr)
      reader.error(block->key_at,
                   fmt::format("'{}' is of policy {}, and the policy is {}", key, to_text(policy),
                               to_text(spec.policy)),
                   fmt::format("policy: {}", to_text(policy)));
  };
  const auto* policy_entry = scheduler.find("policy");
  if (policy_entry == nullptr || !from_text<SchedulingPolicy>(policy_entry->value.text))
    return;  // reported
  need("slurm", spec.slurm.has_value(), SchedulingPolicy::slurm,
       "example: slurm: {PriorityWeightAge: 1000, PriorityWeightFairshare: 10000}");
  need("kueue", spec.kueue.has_value(), SchedulingPolicy::kueue,
       "example: kueue: {clusterQueues: [{name: a, flavors: [{name: POOL, nominalQuota: 8}]}]}");
  need("kubernetes", true, SchedulingPolicy::kubernetes, "");
  const bool bursts =
      spec.policy == SchedulingPolicy::easy_backfill || spec.policy == SchedulingPolicy::sjf ||
      spec.policy == SchedulingPolicy::slurm || spec.policy == SchedulingPolicy::kubernetes;
  if (const auto* overflow = scheduler.find("overflow"); overflow != nullptr && !bursts)
    reader.error(overflow->key_at,
                 fmt::format("overflow is not simulated under policy {}", to_text(spec.policy)),
                 "policies easy_backfill, sjf, slurm, kubernetes");
}

/// What only jobs that end on cluster.pools can have.
void check_paces(Reader& reader, const YamlNode& root, const Scenario& scenario) {
  const SchedulingPolicy policy = scenario.cluster.scheduler->policy;
  const bool of_queue = !places_pods(policy) && !is_of_gavel(policy);
  for (const std::string_view key : {"pace", "across_leaves"}) {
    const auto* there = below(root, "trace", key);
    if (there == nullptr) continue;
    if (!of_queue)
      reader.error(there->key_at, fmt::format("policy {} has no trace.{}", to_text(policy), key),
                   "policies fifo, easy_backfill, sjf, srtf, las, slurm, kueue, kubernetes");
    else if (!scenario.trace->nodes.empty())
      reader.error(there->key_at,
                   fmt::format("trace.{} is of cluster.pools, and trace.nodes is given", key),
                   "give the nodes as pools");
  }
  if (of_queue) return;
  for (const PoolSpec& pool : scenario.cluster.pools)
    if (pool.accelerator && pool.accelerator->is_cut())
      reader.error(below(root, "cluster", "pools")->key_at,
                   fmt::format("pool '{}' has shared GPUs, and policy {} knows none", pool.name,
                               to_text(policy)),
                   "policies fifo, easy_backfill, sjf, srtf, las, slurm, kueue, kubernetes");
}

/// Jobs that a scheduler starts say how many GPUs they take; others have keys of theirs only.
void check_jobs(Reader& reader, const YamlNode& root, bool scheduled) {
  const auto* jobs = root.find("jobs");
  if (jobs == nullptr) return;
  for (const YamlNode::Entry& entry : jobs->value.entries) {
    const YamlNode& item = entry.value;
    if (scheduled && item.kind == YamlNode::Kind::map && !item.has("gpus"))
      reader.error(item.at, "a job that cluster.scheduler starts needs 'gpus'", "example: gpus: 8");
    for (const std::string_view key : kKeysOfScheduled)
      if (const auto* own = item.find(key); own != nullptr && !scheduled)
        reader.error(own->key_at,
                     fmt::format("'{}' is of jobs that a scheduler starts, and there is none", key),
                     "example: cluster: {scheduler: {policy: easy_backfill}}");
    const auto* required = item.find("podset-required-topology");
    if (required != nullptr && item.has("podset-preferred-topology"))
      reader.error(required->key_at, "a job has a required and a preferred topology",
                   "leave one of them out");
  }
}

/// Keys that say of a job where it runs, which Karpenter decides, or how its pods look.
void check_keys_of_nodes(Reader& reader, const YamlNode& job, bool karpenter) {
  for (const std::string_view key : {"workload", "job", "pace", "across_leaves", "resource",
                                     "podset-required-topology", "podset-preferred-topology"})
    if (const auto* own = job.find(key); own != nullptr && karpenter)
      reader.error(own->key_at,
                   fmt::format("'{}' is of nodes that are known, and Karpenter makes these", key),
                   "give the job's duration on the GPUs that the NodePools admit");
  if (const auto* pod = job.find("pod"); pod != nullptr && !karpenter)
    reader.error(pod->key_at, "'pod' is of clusters whose nodes Karpenter makes",
                 "cluster: {autoscaler: karpenter, karpenter: {nodePools: [...]}}");
}

/// Who makes the nodes: nobody, or Karpenter for pods of Kubernetes.
void check_maker(Reader& reader, const YamlNode& root, const Scenario& scenario,
                 std::string_view block) {
  const AutoscalerKind autoscaler = scenario.cluster.autoscaler;
  const SchedulerSpec& scheduler = *scenario.cluster.scheduler;
  const bool karpenter = autoscaler == AutoscalerKind::karpenter;
  if (autoscaler != AutoscalerKind::cluster_autoscaler && !karpenter)
    reader.error(below(root, "cluster", "autoscaler")->key_at,
                 fmt::format("the nodes of '{}' stay, and {} makes and deletes them", block,
                             called(autoscaler)),
                 "leave autoscaler out, or take karpenter with policy kubernetes");
  const auto* jobs = block == "arrivals" ? below(root, block, "classes") : root.find(block);
  if (jobs != nullptr && block == "trace")
    check_keys_of_nodes(reader, jobs->value, karpenter);
  else if (jobs != nullptr)
    for (const YamlNode::Entry& entry : jobs->value.entries)
      check_keys_of_nodes(reader, entry.value, karpenter);
  if (!karpenter) return;
  const auto& at = below(root, "cluster", "scheduler")->value;
  if (scheduler.policy != SchedulingPolicy::kubernetes)
    reader.error(at.at,
                 fmt::format("Karpenter makes nodes for pods of Kubernetes, and the policy "
                             "is {}",
                             to_text(scheduler.policy)),
                 "policy: kubernetes");
  else if (!scheduler.kubernetes || scheduler.kubernetes->preemption != PreemptionPolicy::never)
    reader.error(at.at, "pods that evict others are not simulated where Karpenter makes the nodes",
                 "kubernetes: {preemptionPolicy: Never}");
  if (const auto* overflow = at.find("overflow"))
    reader.error(overflow->key_at, "overflow is of nodes that stay, and Karpenter makes these",
                 "leave it out");
}

/// Nodes that stay are not taken away; of those that Karpenter makes the provider takes spot nodes
/// back.
void check_disruptions(Reader& reader, const YamlNode& root, const Scenario& scenario,
                       std::string_view block) {
  const auto* given = root.find("disruptions");
  if (given == nullptr) return;
  if (scenario.cluster.autoscaler != AutoscalerKind::karpenter)
    return reader.error(given->key_at, fmt::format("'disruptions' cannot stand beside '{}'", block),
                        "the jobs run on nodes that stay");
  for (const YamlNode::Entry& entry : given->value.entries)
    if (entry.key != "preemption" && entry.key != "shortage" && entry.key != "drift")
      reader.error(entry.key_at, fmt::format("'{}' is not simulated beside '{}'", entry.key, block),
                   "preemption, shortage and drift are");
  const auto& law = scenario.disruptions.preemption;
  if (law && std::holds_alternative<TraceReclaim>(*law))
    reader.error(given->value.find("preemption")->value.at,
                 "a trace is of nodes that are made again in their place, and these are not",
                 "a law of their age, such as !exponential {mean: 8h}");
}

/// Where the jobs run: pools, a list of nodes, or what Karpenter makes.
void check_trace_nodes(Reader& reader, const YamlNode& root, const Scenario& scenario,
                       std::string_view block) {
  const SourcePlace at = root.find(block)->key_at;
  const auto* given = below(root, "cluster", "pools");
  const bool pools = given != nullptr || below(root, "cluster", "scale_tier") != nullptr;
  const bool list = scenario.trace && !scenario.trace->nodes.empty();
  if (scenario.cluster.autoscaler == AutoscalerKind::karpenter) {
    if (given != nullptr)
      reader.error(given->key_at, "Karpenter makes all nodes of jobs that share a cluster",
                   "leave pools out: the NodePools say which machines");
    else if (list)
      reader.error(at, "trace.nodes cannot stand beside Karpenter", "leave one of them out");
    return;
  }
  if (pools == list)
    reader.error(at,
                 pools            ? "trace.nodes cannot stand beside cluster.pools"
                 : scenario.trace ? "a trace needs cluster.pools, or a list of nodes"
                                  : fmt::format("{} need cluster.pools", block),
                 scenario.trace ? "example: nodes: openb_node_list_gpu_node.csv"
                                : "example: pools: [{name: a, nodes: 4, machine: ...}]");
}

void read_durations(Reader& reader, const YamlNode& node, TraceSpec& trace) {
  reader.each_entry(node, [&](const std::string& key, const YamlNode& value) {
    if (const auto time = reader.number(value, duration_above_zero()))
      trace.durations.emplace(key, Seconds{*time});
  });
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
      field<T>("durations", Form{.kind = Form::Kind::map, .item = Form::Kind::duration},
               read_durations, "Format sia: how long a job takes, by its application.",
               "{cifar10: 25min, deepspeech2: 3h}"),
      pace_field<T>(),
      across_leaves_field<T>(),
  };
  return table;
}

void check_queue(Reader& reader, const YamlNode& root, const Scenario& scenario) {
  const auto* scheduler = below(root, "cluster", "scheduler");
  if (!root.has("trace") && !root.has("arrivals")) check_jobs(reader, root, scheduler != nullptr);
  if (!scenario.of_queue()) {
    for (const PoolSpec& pool : scenario.cluster.pools)
      if (pool.accelerator && pool.accelerator->is_cut())
        reader.error(
            below(root, "cluster", "pools")->key_at,
            fmt::format("pool '{}' has shared GPUs, which are of jobs that share a cluster",
                        pool.name),
            "leave accelerator.shared and mig-devices out, or give trace:, arrivals: or a "
            "scheduler "
            "for jobs:");
    const bool meant = root.has("trace") || root.has("arrivals") || root.has("jobs") ||
                       reader.misspelt("trace") || reader.misspelt("arrivals") ||
                       reader.misspelt("jobs");
    if (scheduler != nullptr && !meant)
      reader.error(scheduler->key_at, "cluster.scheduler is of a trace, and there is none",
                   "example: trace: {file: jobs.csv, format: csv}");
    return;
  }
  const bool listed = !scenario.trace && !scenario.arrivals;  // by jobs:
  if (root.has("workload") || (!listed && root.has("jobs")) ||
      (scenario.trace && scenario.arrivals))
    return;  // reported
  const std::string_view block = scenario.trace ? "trace" : listed ? "jobs" : "arrivals";
  const SourcePlace at = root.find(block)->key_at;
  if (scheduler == nullptr && root.has("cluster")) {
    reader.error(
        at, scenario.trace ? "a trace needs cluster.scheduler" : "arrivals need cluster.scheduler",
        "example: cluster: {scheduler: {policy: fifo}}");
    return;
  }
  for (const std::string_view key : {"serving", "plan"})
    if (const auto* beside = root.find(key))
      reader.error(beside->key_at, fmt::format("'{}' cannot stand beside '{}'", key, block),
                   "the jobs run on nodes that stay, and nothing is bought for them");
  check_disruptions(reader, root, scenario, block);
  if (!scenario.cluster.scheduler) return;
  check_maker(reader, root, scenario, block);
  check_trace_nodes(reader, root, scenario, block);
  if (scenario.trace &&
      (scenario.trace->format == TraceFormat::gavel) == scenario.trace->throughputs.empty())
    reader.error(at,
                 scenario.trace->throughputs.empty() ? "format gavel needs throughputs"
                                                     : "throughputs are of format gavel",
                 "example: throughputs: simulation_throughputs.json");
  check_policy(reader, root, scenario.trace ? &*scenario.trace : nullptr,
               scenario.cluster.scheduler->policy);
  check_scheduler_blocks(reader, scheduler->value, *scenario.cluster.scheduler);
  check_paces(reader, root, scenario);
}

}  // namespace reckon
