#include "sim/forecast/explain/explain.h"

#include <algorithm>
#include <cmath>

#include "sim/base/check.h"
#include "sim/forecast/warnings.h"
#include "sim/step/servers/delayed_updates.h"

namespace reckon {

namespace {

/// Where a model is cut there is more to wait for than gradients.
void say_what_for(std::vector<Phase>& phases, const ExposedCommunication& x) {
  const auto whole = std::ranges::find(phases, "exposed communication", &Phase::name);
  RECKON_CHECK(whole != phases.end());
  const Phase parts[] = {{"waiting for gradients", x.gradients, 0},
                         {"waiting for parameters (ZeRO)", x.parameters, 0},
                         {"waiting for tensor-parallel ranks", x.tensor, 0},
                         {"waiting for keys and values (context)", x.context, 0},
                         {"waiting for experts (all-to-all)", x.expert, 0},
                         {"waiting for pipeline neighbours", x.pipeline, 0},
                         {"waiting for the slowest worker", x.stragglers, 0},
                         {"arithmetic slowed by transfers beside it", x.contention, 0}};
  const auto at = phases.erase(whole);
  phases.insert(at, std::begin(parts), std::end(parts));
}

}  // namespace

std::vector<Phase> phases_of(const StepEstimate& step, const PlannedStrategy& strategy) {
  Seconds forward{}, both{};
  for (const LayerTime& layer : step.layers) {
    forward += layer.forward;
    both += layer.forward + layer.backward;
  }
  // The layers are one batch's; compute is all batches that one update accumulates.
  const double batches = both.count() > 0 ? step.compute / both : 1;
  std::vector<Phase> phases{{"forward", forward * batches, 0},
                            {"backward", (both - forward) * batches, 0},
                            {"weight update", step.update, 0},
                            {"exposed communication", step.exposed_communication, 0},
                            {"waiting for input", step.exposed_input, 0},
                            {"pipeline bubble", step.bubble, 0},
                            {"framework between steps", step.host, 0}};
  if (cuts_the_model(strategy)) say_what_for(phases, step.exposed);
  std::erase_if(phases, [](const Phase& p) { return p.time.count() <= 0; });
  Seconds whole{};
  for (const Phase& p : phases) whole += p.time;
  for (Phase& p : phases) p.share = p.time / whole;
  return phases;
}

std::vector<LayerGroupTime> layer_groups(const ModelGraph& model, const StepEstimate& step) {
  Seconds all{};
  for (const LayerTime& t : step.layers) all += t.forward + t.backward;
  const double batches = all.count() > 0 ? step.compute / all : 1;
  std::vector<LayerGroupTime> groups;
  std::vector<Seconds> waiting;  // for memory, by group
  for (const LayerTime& t : step.layers) {
    const Layer& layer = model.layers()[index(t.layer)];
    const std::string& name = layer.group.empty() ? layer.name : layer.group;
    auto group = std::find_if(groups.begin(), groups.end(),
                              [&](const LayerGroupTime& g) { return g.name == name; });
    if (group == groups.end()) {
      groups.push_back({.name = name});
      waiting.emplace_back();
      group = groups.end() - 1;
    }
    ++group->layers;
    group->forward += t.forward * batches;
    group->backward += t.backward * batches;
    group->parameters += model.counts()[index(t.layer)].parameters;
    if (t.bound_by_memory)
      waiting[std::size_t(group - groups.begin())] += (t.forward + t.backward) * batches;
  }
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const Seconds time = groups[g].forward + groups[g].backward;
    groups[g].share = time / step.step;
    groups[g].bound_by_memory = waiting[g] * 2 > time;
  }
  return groups;
}

int nodes_used(const Plan& plan, const PlannedWorkload& job, const PlannedPool& pool) {
  const PlannedStrategy& s = job.strategy;
  if (pool.role == Role::parameter_server) return s.server_count();
  const auto computing = computing_pools(plan);
  if (std::find(computing.begin(), computing.end(), &pool) == computing.end())
    return pool.nodes_initial;
  int left = s.workers;
  for (const PlannedPool* p : computing) {
    const int per_node =
        std::max(1, p->accelerators_per_node / std::max(1, s.accelerators_per_worker));
    const bool last = p == computing.back();
    const int here = last ? left : std::min(left, p->nodes_max * per_node);
    if (p == &pool) return (here + per_node - 1) / per_node;
    left -= here;
  }
  return 0;
}

std::optional<Usd> running_cost_per_hour(const Plan& plan) {
  if (!prices_known(plan)) return std::nullopt;
  const auto usd = [](HourlyRate rate) { return Usd{double(rate.nano_usd_per_hour) * 1e-9}; };
  Usd total = usd(plan.billing.management);
  for (const PlannedPool& pool : plan.pools)
    total += double(nodes_used(plan, plan.only_job(), pool)) *
             (usd(pool.price.machine) + usd(pool.price.accelerators));
  return total;
}

Change change_of(std::string what, const Plan& changed, const StepEstimate& step) {
  Change c{std::move(what), "", step.step, step.samples_per_second, {}, std::nullopt};
  const PlannedWorkload& job = changed.only_job();
  c.training = Samples{job.total_samples * samples_factor_of(delayed_length(job, step))} /
               step.samples_per_second;
  if (const auto hourly = running_cost_per_hour(changed))
    c.cost = *hourly * (c.training.count() / 3600);
  return c;
}

Plan with_workers(const Plan& plan, int workers) {
  Plan changed = plan;
  PlannedWorkload& job = changed.only_job();
  const double batches = double(job.global_batch) / job.strategy.accelerators();
  job.strategy.workers = workers;
  if (auto& servers = job.strategy.servers)
    servers->backup_workers = std::min(servers->backup_workers, workers - 1);
  change_batch(job, std::max<std::int64_t>(1, std::llround(batches * job.strategy.accelerators())));
  return changed;
}

Explanation explain(const Plan& plan, const NetworkModel& network) {
  RECKON_CHECK(plan.jobs.size() == 1);
  const PlannedWorkload& job = plan.only_job();
  Explanation e;
  e.scenario = plan.name;
  e.step = estimate_step(plan, job, network);
  e.tokens_per_sample = tokens_per_sample(job);
  e.accelerators = job.strategy.accelerators();
  e.engine = e.step.engine;
  e.memory = estimate_memory(plan, job);
  RECKON_CHECK(e.memory.fits());
  e.phases = phases_of(e.step, job.strategy);
  e.layers = layer_groups(job.model, e.step);
  e.now = change_of("as it is", plan, e.step);
  e.what_would_help = changes_that_apply(plan, e.step, network);
  std::stable_sort(e.what_would_help.begin(), e.what_would_help.end(),
                   [](const Change& a, const Change& b) { return a.training < b.training; });
  e.crossover = crossover_of(plan, network);
  e.evidence = plan.evidence;
  return e;
}

}  // namespace reckon
