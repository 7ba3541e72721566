#include "planner/variants.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "planner/space/site.h"

namespace reckon::planner {
namespace {

/// How much of its layout a split shares with what the scenario says.
int likeness(const Split& split, const StrategySpec& s) {
  const auto is = [](const std::optional<int>& said, int value) {
    return said && *said == value ? 1 : 0;
  };
  const Layout& l = split.layout;
  return (split.kind == s.kind ? 8 : 0) + is(s.zero_stage, l.zero_stage) + is(s.tensor, l.tensor) +
         is(s.pipeline, l.pipeline) + is(s.context, l.context) + is(s.expert, l.expert) +
         is(s.micro_batch, l.micro_batch) + (s.recompute.value_or(Recompute::none) == l.recompute);
}

/// The nodes of the workers' pool that a change sets; nullptr: none.
NodesSpec* nodes_in(Change& change) {
  if (auto* const c = std::get_if<SetNodes>(&change)) return &c->nodes;
  if (auto* const c = std::get_if<SetPool>(&change)) return &c->pool.nodes;
  if (auto* const c = std::get_if<SetPools>(&change)) return &c->pools.front().nodes;
  if (auto* const c = std::get_if<SetCluster>(&change)) return &c->cluster.pools.front().nodes;
  return nullptr;
}

}  // namespace

int spares_now(const Scenario& s) {
  const auto& restart = s.workload->restart;
  return restart ? restart->spares.value_or(0) : 0;
}
int nodes_now(const Scenario& s) {
  const NodesSpec& nodes = worker_pool(s).nodes;
  return std::max(1, (nodes.initial > 0 ? nodes.initial : nodes.max) - spares_now(s));
}

const Split* most_alike(const std::vector<Split>& splits, const StrategySpec& now) {
  const Split* best = nullptr;
  const auto key = [&](const Split& s) { return std::pair(-likeness(s, now), s.step_seconds); };
  for (const Split& split : splits)
    if (best == nullptr || key(split) < key(*best)) best = &split;
  return best;
}

Variants::Variants(const Question& question, const Catalog& catalog, const NetworkModel& network)
    : q_(question), catalog_(catalog), network_(network), now_(nodes_now(scenario())) {
  keep_batch();
  own_ = hardware_for(only_own(), catalog_).kinds.front();
  set_pool_bounds();
}

/// The scenario's batch is what is tried; a search may free it.
void Variants::keep_batch() {
  const WorkloadSpec& w = *scenario().workload;
  tried_ = q_;
  tried_.may = Freedom{};
  tried_.may.hardware = q_.may.hardware;
  tried_.may.as_scaled = q_.may.as_scaled;
  tried_.may.providers = q_.may.providers;
  tried_.may.accelerators = q_.may.accelerators;
  tried_.may.machines = q_.may.machines;
  tried_.may.regions = q_.may.regions;
  tried_.may.nodes = {now_};
  tried_.may.pricing = {worker_pool(scenario()).pricing};
  tried_.may.batch_per_accelerator = w.batch_per_accelerator;
  tried_.may.global_batch = w.global_batch;
  tried_.quota.clear();
  tried_.max_nodes.reset();
  tried_.residency.clear();
  tried_.carbon_free.reset();
  tried_.budget.reset();
  tried_.objective = Objective::time;  // what has no price may be tried
}
Question Variants::only_own() const {
  Question own = tried_;
  own.may.hardware = false;
  return own;
}
/// Kinds of node and places: the question's, else what the provider sells in the region.
Question Variants::with_hardware(bool everywhere) const {
  Question any = tried_;
  if (!q_.may.hardware) {
    any.may.providers = {cluster().provider};
    any.may.accelerators.clear();
    any.may.machines.clear();
    any.may.regions.clear();
    if (!everywhere) any.may.regions = {cluster().region};
  }
  any.may.hardware = true;
  return any;
}

/// An autoscaled pool keeps its shape around another number of nodes.
void Variants::set_pool_bounds() {
  const PoolSpec& pool = worker_pool(scenario());
  offer_.region = cluster().region;
  offer_.zone = "";
  offer_.pricing = pool.pricing;
  offer_.restart = scenario().workload->restart;
  if (pool.nodes.min == pool.nodes.max) return;
  offer_.bounds.text = "as it is";
  offer_.bounds.least = double(pool.nodes.min) / now_;
  offer_.bounds.most = double(pool.nodes.max) / now_;
}

/// What is most like the scenario on so many nodes of that kind, as words of --set, or why not.
ControlOption Variants::on(const Hardware& h, int nodes) const {
  Question question = h.own ? only_own() : with_hardware(true);
  question.may.nodes = {nodes};
  const Site site = make_site(question, h, catalog_, network_);
  ControlOption option;
  const Split* split = most_alike(site.splits, scenario().workload->strategy);
  if (split == nullptr) {
    option.why_not = !site.refused.empty()   ? site.refused.front().what
                     : site.rejected.empty() ? "nothing fits on it"
                                             : site.rejected.begin()->first;
    return option;
  }
  Offer offer = offer_;
  if (!h.own && std::ranges::count(h.regions, cluster().region) == 0)
    offer.region = site.offers.empty() ? h.regions.front() : site.offers.front().region;
  if (nodes != now_) question.may.nodes = {now_, nodes};  // it varies
  option.set = words_for(question, h, offer, *split);
  return option;
}

/// Of a pool that grows and shrinks the gang's nodes are there at the start, if any were.
std::vector<std::string> Variants::words_for(const Question& question, const Hardware& h,
                                             const Offer& offer, const Split& split) const {
  const bool starts_full = worker_pool(scenario()).nodes.initial > 0;
  std::vector<std::string> words;
  for (Change& change : changes_for(question, h, offer, split)) {
    if (h.own && std::holds_alternative<SetCapacityType>(change)) continue;  // as it is
    if (std::holds_alternative<SetRestart>(change)) continue;                // the same
    if (starts_full)
      if (auto* const nodes = nodes_in(change)) nodes->initial = std::max(nodes->min, split.nodes);
    words.push_back(to_text(change));
  }
  return words;
}

}  // namespace reckon::planner
