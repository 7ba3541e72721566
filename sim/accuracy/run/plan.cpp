#include "sim/accuracy/run/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>
#include <utility>

#include "sim/accuracy/mixed_run.h"
#include "sim/accuracy/run/layout.h"
#include "sim/accuracy/run/links.h"
#include "sim/accuracy/run/strategy.h"
#include "sim/step/step.h"

namespace reckon {
namespace {

using Failure = tl::unexpected<std::string>;

constexpr int kVcpusPerAccelerator = 8;  // general knowledge: servers with GPUs have 4 to 28
constexpr double kAnySamples = 1e6;      // samples of the data set; the run is one step long

/// Accelerators that one switch connects where it reaches beyond a machine (a rack of 72): what the
/// catalog's published systems say. 0: it does not.
int peer_domain(const Accelerator& accelerator, const Catalog& catalog) {
  constexpr int kMostInAMachine = 16;
  for (const Machine& m : catalog.machines)
    if (catalog.rules_of(m.provider).owned && m.accelerator == accelerator.name &&
        m.accelerator_count > kMostInAMachine)
      return m.accelerator_count;
  return 0;
}

/// The fewest nodes of no more than `domain` accelerators that share them out evenly, each no
/// smaller than a node as printed: jobs leave a part of each rack idle (64 of 72) rather than cut
/// their layout at its edge. Where no number does: as few as hold them.
int nodes_of_domains(int accelerators, int domain, int printed) {
  const int fewest = (accelerators + domain - 1) / domain;
  for (int nodes = fewest; nodes * std::max(1, printed) <= accelerators; ++nodes)
    if (accelerators % nodes == 0) return nodes;
  return fewest;
}

/// A switch's domain is one node of ours, whatever part of it a row calls a node.
RunPlacement placement_of(const RunConfiguration& run, const Accelerator& accelerator,
                          const Catalog& catalog) {
  RunPlacement p;
  const int printed = run.accelerators_per_node > 0 ? run.accelerators_per_node : run.accelerators;
  const int domain = std::max(printed, peer_domain(accelerator, catalog));
  if (domain > printed || run.nodes == 0)
    p.nodes = nodes_of_domains(run.accelerators, domain, std::min(printed, domain));
  else
    p.nodes = std::max(1, run.nodes);
  p.per_node = (run.accelerators + p.nodes - 1) / p.nodes;
  p.nodes_as_printed = domain > printed ? double(p.per_node) / printed : 1;
  return p;
}

/// The bandwidth of a node's network. Not printed: that of the widest machine in the catalog with
/// as many of this accelerator built in, else with more: what is rented with one accelerator has no
/// network for eight. 0: not known.
BytesPerSecond network_of(const RunConfiguration& run, const RunPlacement& at,
                          const Accelerator& accelerator, const Catalog& catalog) {
  if (run.inter_node && run.inter_node->v > 0) return *run.inter_node * at.nodes_as_printed;
  BytesPerSecond as_many{}, more{};
  for (const Machine& m : catalog.machines) {
    if (m.accelerator != accelerator.name) continue;
    if (m.accelerator_count == at.per_node) as_many = std::max(as_many, m.network.value);
    if (m.accelerator_count > at.per_node) more = std::max(more, m.network.value);
  }
  return as_many.v > 0 ? as_many : more;
}

struct Site {
  ClusterSpec cluster;
  bool tpu = false;
};

tl::expected<Site, std::string> tpu_site(const RunConfiguration& run, const Accelerator& chip,
                                         const Catalog& catalog) {
  const TpuSlice* slice = nullptr;
  for (const TpuSlice& s : catalog.slices)
    if (s.accelerator == chip.name && s.chips == run.accelerators) slice = &s;
  if (slice == nullptr)
    return Failure(
        fmt::format("no slice of {} chips of {} in the catalog", run.accelerators, chip.name));
  std::vector<const Location*> places;
  for (const std::string& item : {slice->name, chip.name})
    for (const ProviderRules& p : catalog.providers)
      if (places.empty()) places = catalog.locations_of(p.id, item);
  if (places.empty()) return Failure(fmt::format("no place for slices of {}", chip.name));
  Site site;
  site.tpu = true;
  site.cluster.provider = places.front()->provider;
  for (const Service& service : catalog.rules_of(site.cluster.provider).services) {
    const ServiceRules& rules = catalog.rules_of(service);
    if (!rules.kubernetes && !rules.nodes_of_job && !site.cluster.service)
      site.cluster.service = service;
  }
  site.cluster.region = places.front()->region;
  PoolSpec pool;
  pool.name = "slice";
  pool.tpu = TpuSpec{chip.name, slice->name};
  site.cluster.pools.push_back(pool);
  return site;
}

Site gpu_site(const RunConfiguration& run, const RunPlacement& at, const Accelerator& accelerator,
              BytesPerSecond network, const Provider& own) {
  Site site;
  site.cluster.provider = own;
  MachineInline machine;
  machine.vcpus = kVcpusPerAccelerator * at.per_node;
  machine.memory = Bytes{double(machine.vcpus) * 8e9};
  machine.network = network;
  PoolSpec pool;
  pool.name = "gpus";
  pool.role = Role::worker;
  pool.machine = machine;
  pool.accelerator = AcceleratorSpec{accelerator.name, at.per_node};
  pool.nodes = {at.nodes, at.nodes, at.nodes};
  site.cluster.pools.push_back(pool);
  if (run.strategy == "parameter_server" && at.nodes > 1 && run.parameter_servers > 0) {
    PoolSpec servers;
    servers.name = "servers";
    servers.role = Role::parameter_server;
    servers.machine = machine;
    servers.nodes = {run.parameter_servers, run.parameter_servers, run.parameter_servers};
    site.cluster.pools.push_back(servers);
  }
  return site;
}

/// What is recomputed is not printed: the least with which the run fits, for it ran; none where it
/// fits with none of them.
void recompute_to_fit(const Plan& plan, PlannedWorkload& job) {
  const Recompute assumed = job.strategy.layout.recompute;
  for (const Recompute mode : {Recompute::none, Recompute::selective, Recompute::full}) {
    if (mode < assumed) continue;
    job.strategy.layout.recompute = mode;
    if (estimate_memory(plan, job).fits_at(kMoreLikelyThanNot)) return;
  }
  job.strategy.layout.recompute = assumed;
}

/// Blocks of each stage of "7 9 9 9", where embedding and head count as a layer each. Empty: it is
/// no list of `stages` numbers.
std::vector<int> stage_blocks(std::string_view layers_per_stage, int stages) {
  std::vector<int> blocks;
  std::istringstream words{std::string(layers_per_stage)};
  for (int layers = 0; words >> layers;) blocks.push_back(layers);
  if (!words.eof() || blocks.empty() || int(blocks.size()) != stages) return {};
  --blocks.front();
  --blocks.back();
  return blocks;
}

/// The run with its batches in samples.
RunConfiguration in_samples(RunConfiguration run, double tokens) {
  run.micro_batch /= tokens;
  run.batch_per_accelerator /= tokens;
  run.global_batch = static_cast<std::int64_t>(double(run.global_batch) / tokens);
  return run;
}

WorkloadSpec workload_of(const RunConfiguration& run, RunModel model, StrategySpec strategy,
                         Precision precision) {
  WorkloadSpec w;
  w.model = std::move(model.spec);
  w.finetune = std::move(model.finetune);
  w.sequence_length = model.sequence_length;
  if (hides_layout(run))
    w.global_batch = run.accelerators;
  else if (strategy.kind == StrategyKind::model_parallel && run.global_batch > 0)
    w.global_batch = static_cast<int>(run.global_batch);
  else
    w.batch_per_accelerator = static_cast<int>(micro_batch_of(run));
  w.dataset = DatasetInline{kAnySamples, Bytes{}};
  w.train = TrainLength{TrainLength::Unit::steps, 1};
  w.precision = precision;
  // Megatron-LM sums bf16's gradients in fp32 by itself [megatron/training/arguments.py,
  // accumulate_allreduce_grads_in_fp32]; recipes of Megatron Bridge say otherwise.
  if (run.stack == "megatron" && precision == Precision::bf16) w.fp32_gradients = true;
  w.strategy = strategy;
  w.stack = std::string(run.stack);
  CheckpointSpec none;
  none.mode = CheckpointSpec::Mode::none;
  w.checkpoint = none;
  return w;
}

std::string unknown_accelerator(std::string_view name, const Catalog& catalog) {
  std::vector<std::string> names;
  for (const Accelerator& a : catalog.accelerators) names.push_back(a.name);
  return fmt::format("unknown accelerator {}{}", name, did_you_mean(name, names));
}

}  // namespace

tl::expected<Precision, std::string> precision_of_run(const RunConfiguration& run,
                                                      const Accelerator& accelerator) {
  const bool printed = run.precision != "unknown" && !run.precision.empty();
  const std::string_view text = printed ? run.precision : run.likely_precision;
  std::optional<Precision> precision;
  if (text == "16") {
    const bool bf16 = accelerator.peak_for(Precision::bf16).has_value();
    const bool fp16 = accelerator.peak_for(Precision::fp16).has_value();
    const bool language = run.model == "gpt" || run.model == "moe" || run.model == "gpt_lora";
    precision = bf16 && (language || !fp16) ? Precision::bf16 : Precision::fp16;
  } else {
    precision = from_text<Precision>(text);
  }
  if (!precision)
    return Failure(text.empty() ? std::string("the precision is not known")
                                : fmt::format("precision {} is not simulated", text));
  if (!accelerator.peak_for(*precision))
    return Failure(
        fmt::format("no peak of {} in {} is known", accelerator.name, to_text(*precision)));
  return *precision;
}

tl::expected<Plan, std::string> plan_of_run(const RunConfiguration& printed,
                                            const Catalog& catalog) {
  StageNodes mixed;
  if (is_mixed(printed)) {
    auto stages = stage_nodes_of(printed, catalog);
    if (!stages) return Failure(stages.error());
    mixed = std::move(*stages);
  }
  const std::string_view name =
      mixed.empty() ? printed.accelerator : std::string_view(mixed.front().front());
  const Accelerator* accelerator = catalog.find_accelerator(name);
  if (accelerator == nullptr) return Failure(unknown_accelerator(name, catalog));
  auto model = model_of_run(printed);
  if (!model) return Failure(model.error());
  const RunConfiguration run =
      model->batch_in_tokens ? in_samples(printed, model->tokens) : printed;
  const auto precision = precision_of_run(run, *accelerator);
  if (!precision) return Failure(precision.error());
  const double micro = micro_batch_of(run);
  if (micro == 0) return Failure("the batch is not printed");
  if (micro < 1 && !hides_layout(run)) return Failure("less than one sample an accelerator");
  if (hides_layout(run) && run.global_batch == 0) return Failure("the global batch is not printed");

  const RunPlacement at = placement_of(run, *accelerator, catalog);
  const bool tpu = accelerator->kind == AcceleratorKind::tpu;
  const BytesPerSecond network = network_of(run, at, *accelerator, catalog);
  if (!tpu && at.nodes > 1 && network.v == 0)
    return Failure("the bandwidth between nodes is not known");
  constexpr BytesPerSecond kUnused{10e9 / 8};  // of a node that has no other to talk to
  auto strategy = strategy_of(run, at, tpu);
  if (!strategy) return Failure(strategy.error());
  auto site = tpu ? tpu_site(run, *accelerator, catalog)
                  : tl::expected<Site, std::string>(gpu_site(run, at, *accelerator,
                                                             network.v > 0 ? network : kUnused,
                                                             catalog.own_machines().id));
  if (!site) return Failure(site.error());
  if (!mixed.empty()) place_stages(mixed, site->cluster, *strategy);

  ScenarioFile file;
  file.scenario.name = std::string(run.model);
  file.scenario.cluster = std::move(site->cluster);
  file.scenario.workload = workload_of(run, std::move(*model), *strategy, *precision);
  auto plan = make_plan(file, catalog);
  if (!plan) return Failure(plan.error().front().what);

  PlannedWorkload& job = plan->only_job();
  job.global_batch = std::max(job.global_batch, run.global_batch);
  job.stage_blocks = stage_blocks(run.layers_per_stage, job.strategy.layout.pipeline);
  set_links(*plan, run, catalog);
  if (hides_layout(run)) {
    job.global_batch = run.global_batch;
    if (!take_fastest_layout(*plan, job))
      return Failure("the source does not give the layout, and no layout fits in memory");
  } else if (run.recompute == "unknown" && cuts_the_model(job.strategy)) {
    recompute_to_fit(*plan, job);
  }
  return std::move(*plan);
}

}  // namespace reckon
