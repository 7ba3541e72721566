#include "sim/queue/pace/own_jobs.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace reckon {
namespace {

int gpus_of_node(const PoolSpec& pool) { return pool.accelerator ? pool.accelerator->count : 0; }

/// What it costs is no part of how long a job takes.
void leave_costs_out(PoolSpec& pool) {
  auto* machine = std::get_if<MachineInline>(&pool.machine);
  if (machine == nullptr) return;
  machine->price.reset();
  machine->purchase.reset();
  machine->amortised_over.reset();
  machine->tariff.reset();
  machine->power_watts = 0;
}

/// What is wrong, behind its place where it has one.
std::string placed(const Diagnostic& d) {
  return d.at.line > 0 ? fmt::format("{}:{}:{}: {}", d.at.file, d.at.line, d.at.column, d.what)
                       : d.what;
}

const PoolSpec& pool_named(const ClusterSpec& cluster, const std::string& name) {
  return *std::ranges::find(cluster.pools, name, &PoolSpec::name);
}

}  // namespace

int PaceLoader::nodes_per_leaf() const {
  const auto& fabric = file_.scenario.cluster.fabric;
  return fabric && fabric->nodes_per_leaf ? *fabric->nodes_per_leaf : 0;
}

PlacementPace PaceLoader::as_said(const PaceSpec& pace, const std::string& at) {
  for (const auto& [pool, own] : pace.by_pool)
    if (std::ranges::find(pools_, pool) == pools_.end())
      source_.error(at + ".pace",
                    fmt::format("'{}' is no pool with GPUs{}", pool, did_you_mean(pool, pools_)),
                    fmt::format("pools: {}", fmt::join(pools_, ", ")));
  if (pace.across_leaves && nodes_per_leaf() == 0)
    source_.error(at + ".across_leaves", "the cluster has no leaves that jobs could be across",
                  "example: cluster: {fabric: {nodes_per_leaf: 4}}");
  PlacementPace out;
  for (const std::string& name : pools_) {
    const auto said = pace.by_pool.find(name);
    const double own = said == pace.by_pool.end() ? 1 : said->second;
    if (own == 0)
      out.by_pool.emplace_back();
    else if (pace.across_leaves)
      out.by_pool.push_back({own, own * *pace.across_leaves});
    else
      out.by_pool.push_back({own});
  }
  if (!out.by_pool.empty() && std::ranges::all_of(out.by_pool, &std::vector<double>::empty))
    source_.error(at + ".pace", "its jobs run on no pool", "leave a pool out, or give it a pace");
  return out;
}

std::optional<PlacementPace> PaceLoader::of_list() {
  const PaceSpec& pace = file_.scenario.trace->pace;
  if (!pace.given()) return std::nullopt;
  return as_said(pace, "trace");
}

bool PaceLoader::set_list(JobList& list) {
  const auto alike = of_list();
  if (!alike && list.names.trainings.names().empty()) return true;
  if (alike) list.paces.push_back(*alike);
  const std::filesystem::path folder =
      (directory_of(file_, "trace.file") / file_.scenario.trace->file).parent_path();
  struct Known {
    std::int32_t pace = 0;
    Seconds length{};
  };
  std::map<std::pair<std::int32_t, int>, Known> known;  // by training and GPUs
  for (JobRequest& job : list.jobs) {
    if (job.pace < 0) {
      job.pace = alike ? 0 : JobRequest::kAlikeEverywhere;
      continue;
    }
    const auto [at, added] = known.try_emplace({job.pace, job.gpus()});
    if (added) {
      const std::string& name = list.names.trainings.name(job.pace);
      auto own = of_training({folder / name, "trace.file", "'" + name + "'"}, job.gpus());
      if (!own) return false;
      at->second = {static_cast<std::int32_t>(list.paces.size()), *own->length};
      list.paces.push_back(std::move(own->pace));
    }
    job.pace = at->second.pace;
    std::get<FixedTime>(job.work).time = to_clock(at->second.length);
  }
  return true;
}

ClassPaces PaceLoader::of_class(const ArrivalClassSpec& kind) {
  ClassPaces out;
  if (kind.job.empty() && !kind.pace.given()) return out;
  const std::string at = "arrivals.classes." + kind.name + ".job";
  const Training training{directory_of(file_, at) / kind.job, at, "class " + kind.name};
  for (const auto& [gpus, share] : kind.gpus) {
    if (kind.job.empty()) {
      const auto as = as_said(kind.pace, "arrivals.classes." + kind.name);
      out[gpus] = {std::nullopt, as};
      if (!source_.problems.empty()) return {};
    } else if (auto own = of_training(training, gpus)) {
      out[gpus] = std::move(*own);
    } else {
      return {};
    }
  }
  return out;
}

std::optional<ClassPace> PaceLoader::of_job(const JobSpec& job) {
  const std::string at = "jobs." + job.name;
  const std::string whose = "job " + job.name;
  if (!job.job.empty())
    return of_training({directory_of(file_, at + ".job") / job.job, at + ".job", whose}, job.gpus);
  if (job.has_workload) {
    ScenarioFile alone = file_;
    alone.scenario.jobs.clear();
    alone.scenario.workload = job.workload;
    alone.places = file_.places.with_alias(at + ".workload", "workload");
    return of_training({{}, at + ".workload", whose, &alone}, job.gpus);
  }
  if (!job.pace.given()) return std::nullopt;
  return ClassPace{std::nullopt, as_said(job.pace, at)};
}

/// By how many leaves its nodes are of; empty: it cannot run there, as a note says.
std::vector<double> PaceLoader::seconds_on(const PoolSpec& pool, const Training& training,
                                           int gpus) {
  const int each = gpus_of_node(pool);
  const auto keep_off = [&](const std::string& why) {
    notes_.push_back(fmt::format("jobs of {} on {} GPU{} are kept off pool {}: {}", training.whose,
                                 gpus, gpus == 1 ? "" : "s", pool.name, why));
    return std::vector<double>{};
  };
  if (gpus > each && gpus % each != 0)
    return keep_off(fmt::format("they are no whole nodes of {} GPUs", each));
  const int nodes = std::max(1, gpus / each);
  ClusterSpec on = file_.scenario.cluster;
  on.pools = {pool};
  on.pools.front().nodes = {nodes, nodes, nodes};
  on.pools.front().accelerator->count = std::min(gpus, each);
  leave_costs_out(on.pools.front());
  on.scheduler.reset();
  const int of_leaf = nodes_per_leaf();
  std::vector<double> seconds;
  std::map<int, double> known;  // by nodes of a leaf
  for (int leaves = 1; leaves <= (of_leaf > 0 ? nodes : 1); ++leaves) {
    const int most = of_leaf > 0 ? std::min(of_leaf, (nodes + leaves - 1) / leaves) : nodes;
    if (const auto before = known.find(most); before != known.end()) {
      seconds.push_back(before->second);
      continue;
    }
    if (of_leaf > 0) on.fabric->nodes_per_leaf = leaves == 1 ? std::min(of_leaf, nodes) : most;
    const auto time = training.scenario != nullptr ? times_.of_training(*training.scenario, on)
                                                   : times_.of_file(training.file, on);
    if (!time) return keep_off(placed(time.error().front()));
    seconds.push_back(known[most] = time->count());
  }
  return seconds;
}

std::optional<ClassPace> PaceLoader::of_training(const Training& training, int gpus) {
  if (training.scenario != nullptr ? !times_.of_training : !times_.of_file) {
    source_.error(training.at, "a training of one's own needs the catalog", "reckon simulate FILE");
    return std::nullopt;
  }
  ClassPace out;
  double best = std::numeric_limits<double>::infinity();
  const std::size_t before = notes_.size();
  for (const std::string& name : pools_) {
    const PoolSpec& pool = pool_named(file_.scenario.cluster, name);
    const bool shared = pool.accelerator && pool.accelerator->is_cut();
    out.pace.by_pool.push_back(shared ? std::vector<double>{} : seconds_on(pool, training, gpus));
    for (const double s : out.pace.by_pool.back()) best = std::min(best, s);
  }
  if (best == std::numeric_limits<double>::infinity()) {
    std::string why = notes_.size() > before ? notes_.back() : "no pool has whole GPUs";
    source_.error(training.at,
                  fmt::format("{} runs on no pool on {} GPUs",
                              training.scenario != nullptr
                                  ? training.whose
                                  : fmt::format("'{}'", training.file.filename().string()),
                              gpus),
                  why);
    return std::nullopt;
  }
  for (std::vector<double>& by_leaves : out.pace.by_pool)
    for (double& s : by_leaves) s = best / s;
  out.length = Seconds{best};
  return out;
}

}  // namespace reckon
