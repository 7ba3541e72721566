#include <fmt/format.h>

#include <algorithm>

#include "planner/question/reader.h"
#include "sim/base/unit_text.h"
#include "sim/scenario/restart.h"

// How it is trained: nodes, layouts, batch, checkpoints, restarts.
namespace reckon::planner {
namespace {

/// Beyond so many nodes in a row not every number is tried but so many an octave.
constexpr int kNodeCountsInARow = 64;

/// What another batch does to learning [McCandlish et al. 2018, arXiv:1812.06162].
std::string learning_text(const WorkloadSpec& w) {
  const bool counted = w.train && w.train->unit == TrainLength::Unit::to_accuracy;
  return fmt::format(
      "Another batch wants another learning rate, and more samples to the same quality where "
      "it is above the critical batch: {}",
      counted ? "counted from published runs" : "not counted, the training's length is as written");
}

}  // namespace

std::vector<int> counts_of(const std::vector<std::string>& texts) {
  std::vector<int> out;
  for (const std::string& text : texts) {
    const std::size_t dots = text.find("..");
    const std::int64_t low = *parse_integer(std::string_view(text).substr(0, dots));
    const std::int64_t high =
        dots == std::string::npos ? low : *parse_integer(std::string_view(text).substr(dots + 2));
    for (std::int64_t n = low; n <= high;) {
      out.push_back(int(n));
      std::int64_t stride = 1;
      while (n >= 2 * stride * kNodeCountsInARow) stride *= 2;
      n = n < high ? std::min(high, n + stride) : high + 1;
    }
  }
  std::ranges::sort(out);
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

void QuestionReader::read_nodes(const Scenario& s) {
  const NodesSpec& own = worker_pool(s).nodes;
  // Nodes that stand by are beside those that a candidate has.
  const auto& restart = s.workload->restart;
  const int spares = restart ? restart->spares.value_or(0) : 0;
  // A pool that is empty until something fills it says how many nodes it may have.
  const bool empty = own.initial == 0 && q_.may.as_scaled;
  q_.may.nodes = {empty ? own.max : std::max(std::min(1, own.initial), own.initial - spares)};
  if (const auto* texts = varied("nodes")) q_.may.nodes = counts_of(*texts);
  if (q_.may.nodes.front() == 0)
    error("cluster.pools." + worker_pool(s).name + ".nodes", "a plan needs nodes to start with",
          "plan: {vary: {nodes: 1..8}}");
  if (const auto* texts = varied("parameter_servers")) q_.may.parameter_servers = counts_of(*texts);
}

void QuestionReader::read_strategies(const Scenario& s) {
  Freedom& may = q_.may;
  if (const auto* words = varied("strategy")) {
    const bool any = std::ranges::find(*words, "any") != words->end();
    for (const StrategyTraits& strategy : kStrategies) {
      const bool named = std::ranges::find(*words, to_text(strategy.kind)) != words->end();
      if (named || (any && !strategy.servers)) may.kinds.push_back(strategy.kind);
    }
  }
  may.precision = varied("precision") && !s.workload->precision;
  if (varied("layout")) {
    may.layouts = true;
    for (const StrategyTraits& strategy : kStrategies)
      if (strategy.cuts && std::ranges::find(may.kinds, strategy.kind) == may.kinds.end())
        may.kinds.push_back(strategy.kind);
  }
  if (const auto* words = varied("recompute"))
    for (const auto& [mode, word] : {std::pair{Recompute::none, "none"},
                                     {Recompute::selective, "selective"},
                                     {Recompute::full, "full"}})
      if (std::ranges::find(*words, word) != words->end() ||
          std::ranges::find(*words, "any") != words->end())
        may.recompute.push_back(mode);
  read_batch(*s.workload);
}

void QuestionReader::read_batch(const WorkloadSpec& w) {
  Freedom& may = q_.may;
  const auto* texts = varied("global_batch");
  if (!texts) {
    may.batch_per_accelerator = w.batch_per_accelerator;
    may.global_batch = w.global_batch;
    q_.batch_rule =
        w.global_batch
            ? fmt::format("The global batch is held at {} samples; plan.vary.global_batch frees it",
                          format_count(double(*w.global_batch)))
            : fmt::format(
                  "Each accelerator takes {} sample{}, so that a step's grow with the "
                  "accelerators; workload.global_batch holds them. {}",
                  w.batch_per_accelerator.value_or(1),
                  w.batch_per_accelerator.value_or(1) == 1 ? "" : "s", learning_text(w));
    return;
  }
  if (w.global_batch)
    error("workload.global_batch", "the batch is given and varied",
          "write batch_per_accelerator: 1, which the planner then replaces");
  may.most_global_batch = counts_of(*texts).back();
  q_.assumed.push_back(
      fmt::format("each accelerator gets the largest power of two of samples that fits, and a "
                  "step has at most {} of them",
                  may.most_global_batch));
  q_.batch_rule = fmt::format("The global batch is free up to {} samples. {}",
                              format_count(double(may.most_global_batch)), learning_text(w));
}

void QuestionReader::read_checkpoints() {
  using Mode = CheckpointSpec::Mode;
  if (const auto* texts = varied("checkpoint_interval"))
    for (const std::string& text : *texts) {
      const bool timed = text != "none" && text != "optimal";
      q_.may.save_intervals.push_back({timed            ? Mode::interval
                                       : text == "none" ? Mode::none
                                                        : Mode::optimal,
                                       timed ? *parse_duration(text) : Seconds{}, text});
    }
  const auto* names = varied("checkpoint_storage");
  if (!names) return;
  std::vector<std::string> known;
  for (const Storage& s : catalog_.storages)
    if (std::ranges::count(q_.may.providers, s.provider) > 0) known.push_back(s.name);
  for (const std::string& name : *names) {
    const Storage* s = catalog_.find_storage(name);
    if (s != nullptr && std::ranges::count(known, s->name) > 0)
      q_.may.checkpoint_storages.push_back(s->name);
    else
      error("plan.vary.checkpoint_storage",
            fmt::format("unknown storage '{}'{}", name, did_you_mean(name, known)),
            fmt::format("known: {}", fmt::join(known, ", ")));
  }
}

void QuestionReader::read_restarts(const WorkloadSpec& workload) {
  const auto* texts = varied("restart");
  if (!texts) {
    if (!workload.restart) return;
    if (workload.restart->kind == RestartKind::warm_spare && !workload.restart->spares)
      error("workload.restart", "a plan has to know how many nodes stand by",
            "restart: {kind: warm_spare, spares: 1}");
    q_.may.restarts = {*workload.restart};
    return;
  }
  for (const std::string& text : *texts)
    if (const auto restart = parse_restart(text)) {
      q_.may.restarts.push_back(*restart);
      if (workload.restart) q_.may.restarts.back().batch = workload.restart->batch;
    }
}

}  // namespace reckon::planner
