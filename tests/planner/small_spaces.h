#pragma once
#include <fmt/format.h>

#include <vector>

#include "planner/planner.h"
#include "sim/base/random.h"
#include "sim/scenario/yaml/scenario_yaml.h"
#include "support/shipped_catalog.h"

// Small questions whose answer a loop over everything can find.
namespace reckon::test {

/// Numbers of one random case.
class Dice {
 public:
  explicit Dice(std::uint32_t which) : stream_(20261121, which, Purpose{"planner test"}, 0) {}
  int from(int low, int high) {
    return low + int(stream_.uniform() * double(high - low + 1)) % (high - low + 1);
  }
  double uniform() { return stream_.uniform(); }
  template <class T>
  std::vector<T> some(std::vector<T> of) {
    std::vector<T> out;
    for (T& one : of)
      if (from(0, 1) == 1) out.push_back(one);
    if (out.empty()) out.push_back(of[std::size_t(from(0, int(of.size()) - 1))]);
    return out;
  }

 private:
  RandomStream stream_;
};

/// What may vary in a case: Compute Engine's attachable GPUs in two regions.
struct SmallSpace {
  std::vector<std::string> machines, accelerators, regions;
  std::vector<std::string> pricing;
  int nodes_low = 1, nodes_high = 2;
  std::string deadline, budget, objective;
  int quota = 0;  // of the first accelerator in the first region; 0: none
};

/// Machines, accelerators, regions and ways of buying of one provider.
inline SmallSpace every_place() {
  SmallSpace s;
  s.machines = {"n1-standard-8", "n1-standard-16"};
  s.accelerators = {"P100-PCIE-16", "V100-SXM2-16", "T4"};
  s.regions = {"us-central1", "us-west1"};
  s.pricing = {"on_demand", "spot"};
  s.nodes_high = 2;
  s.objective = "cost";
  return s;
}

inline SmallSpace small_space(std::uint32_t which) {
  Dice dice(which);
  SmallSpace s;
  s.machines = dice.some<std::string>({"n1-standard-8", "n1-standard-16"});
  s.accelerators = dice.some<std::string>({"P100-PCIE-16", "V100-SXM2-16", "T4"});
  s.regions = dice.some<std::string>({"us-central1", "us-west1"});
  s.pricing = dice.some<std::string>({"on_demand", "spot"});
  s.nodes_low = dice.from(1, 2);
  s.nodes_high = s.nodes_low + dice.from(0, 1);
  if (dice.from(0, 1) == 1) s.deadline = fmt::format("{}min@90%", dice.from(20, 200));
  if (dice.from(0, 2) == 2) s.budget = fmt::format("{} USD@80%", dice.from(1, 30));
  const std::vector<std::string> objectives{"cost", "time", "cost_time", "p95_cost", "p95_time"};
  s.objective = objectives[std::size_t(dice.from(0, 4))];
  if (dice.from(0, 3) == 3) s.quota = dice.from(1, 8);
  return s;
}

inline std::string small_text(const SmallSpace& s) {
  std::string text = fmt::format(
      "name: small\n"
      "workload:\n"
      "  model: {{layers: [{{input: 3x32x32}}, {{conv2d: 64, kernel: 3, padding: 1}}, "
      "{{global_average_pool: true}}, {{linear: 10}}, {{softmax_cross_entropy: true}}]}}\n"
      "  dataset: {{samples: 40M, bytes_per_sample: 3kB}}\n"
      "  train: {{epochs: 1}}\n"
      "  batch_per_accelerator: 256\n"
      "  strategy: {{kind: single}}\n"
      "cluster:\n"
      "  provider: gcp\n"
      "  region: us-central1\n"
      "  pools: [{{name: workers, machine: n1-standard-8, accelerator: {{type: T4, count: 1}}, "
      "nodes: 1}}]\n"
      "forecast: {{replications: 12, seed: 3}}\n"
      "plan:\n"
      "  vary: {{machine: [{}], accelerator: [{}], region: [{}], pricing: [{}], nodes: {}..{}}}\n"
      "  objective: {}\n",
      fmt::join(s.machines, ", "), fmt::join(s.accelerators, ", "), fmt::join(s.regions, ", "),
      fmt::join(s.pricing, ", "), s.nodes_low, s.nodes_high, s.objective);
  if (!s.deadline.empty()) text += fmt::format("  deadline: {}\n", s.deadline);
  if (!s.budget.empty()) text += fmt::format("  budget: {}\n", s.budget);
  if (s.quota > 0)
    text += fmt::format("  quota: {{gcp/{}/{}: {}}}\n", s.regions.front(), s.accelerators.front(),
                        s.quota);
  return text;
}

inline planner::Question question_of(const std::string& text, const Catalog& catalog) {
  planner::Base base;
  base.text = text;
  base.name = "small.yaml";
  auto question = planner::make_question(std::move(base), catalog);
  if (!question) throw std::runtime_error(format(question.error()));
  return std::move(*question);
}

inline planner::Answer answer_of(const std::string& text, const Catalog& catalog,
                                 std::size_t keep = 5) {
  const auto network = make_fluid_network();
  planner::PlannerOptions options;
  options.keep = keep;
  options.threads = 1;
  options.exact_up_to = 1000;
  auto answer = planner::plan(question_of(text, catalog), catalog, *network, options);
  if (!answer) throw std::runtime_error(format(answer.error()));
  return std::move(*answer);
}

/// The least score of all combinations that can be planned and meet the limits, found without the
/// planner: each is a scenario of its own, forecast like any other. nullopt: none does.
inline std::optional<double> brute_force(const SmallSpace& s, const Catalog& catalog) {
  const auto network = make_fluid_network();
  const planner::Question question = question_of(small_text(s), catalog);
  std::optional<double> best;
  const auto look_at = [&](const std::string& machine, const std::string& accelerator, int count,
                           const std::string& region, const std::string& pricing, int nodes) {
    if (s.quota > 0 && region == s.regions.front() && accelerator == s.accelerators.front() &&
        nodes * count > s.quota)
      return;
    const char* kind = nodes > 1 ? "multi_worker_mirrored" : count > 1 ? "mirrored" : "single";
    const std::vector<std::string> overrides{
        fmt::format("cluster={{provider: gcp, region: {}, pools: [{{name: workers, machine: {}, "
                    "accelerator: {{type: {}, count: {}}}, nodes: {}, pricing: {}}}]}}",
                    region, machine, accelerator, count, nodes, pricing),
        fmt::format("workload.strategy={{kind: {}}}", kind)};
    const auto file = parse_scenario(small_text(s), "small.yaml", overrides);
    const auto plan = file ? make_plan(*file, catalog) : tl::unexpected(Diagnostics{});
    if (!plan) return;
    ForecastOptions how;
    how.assumption_effects = false;
    how.threads = 1;
    const planner::Evaluated e = planner::judged(question, make_forecast(*plan, *network, how));
    if (e.meets_all() && std::isfinite(e.score) && (!best || e.score < *best)) best = e.score;
  };
  for (const std::string& machine : s.machines)
    for (const std::string& accelerator : s.accelerators)
      for (const int count : {1, 2, 4, 8})
        for (const std::string& region : s.regions)
          for (const std::string& pricing : s.pricing)
            for (int nodes = s.nodes_low; nodes <= s.nodes_high; ++nodes)
              look_at(machine, accelerator, count, region, pricing, nodes);
  return best;
}

}  // namespace reckon::test
