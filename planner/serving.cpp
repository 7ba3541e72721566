#include "planner/serving.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "sim/forecast/forecast.h"
#include "sim/scenario/plan_draft.h"
#include "sim/scenario/scenario_yaml.h"

namespace reckon::planner {
namespace {

constexpr double kRequests = 200'000;              // of one try: its p99 rests on 2,000 of them
constexpr double kShortest = 60, kLongest = 3600;  // seconds
constexpr int kMostReplicas = 4096;

struct Candidate {
  std::string machine, accelerator;
  int per_node = 0;
  bool built_in = false;                   // the machine brings its accelerators
  int least = 1;                           // replicas, below which no queue is stable
  double usd_per_node = 0, least_usd = 0;  // an hour
};

PoolSpec* pool_of(Scenario& scenario) {
  for (PoolSpec& pool : scenario.cluster.pools)
    if (pool.role == Role::inference &&
        (scenario.serving->pool.empty() || pool.name == scenario.serving->pool))
      return &pool;
  return nullptr;
}

class Search {
 public:
  Search(const ScenarioFile& file, const Catalog& catalog, const ServingQuestion& question)
      : catalog_(catalog), question_(question), file_(file) {
    Scenario& s = file_.scenario;
    goal_ = parse_expectation(s.serving->goal).value();
    const auto& rates = s.serving->requests_per_second;
    answer_.goal = s.serving->goal;
    answer_.rate = *std::max_element(rates.begin(), rates.end());
    s.serving->requests_per_second = {answer_.rate};
    s.serving->period = Seconds{std::clamp(kRequests / answer_.rate, kShortest, kLongest)};
    s.serving->replicas = {};
    s.expect.clear();
  }

  ServingAnswer run(bool on_accelerators) {
    collect(on_accelerators);
    std::vector<Candidate> able;
    for (Candidate& c : candidates_)
      if (is_able(c)) able.push_back(c);
    std::sort(able.begin(), able.end(), [](const Candidate& a, const Candidate& b) {
      return std::tie(a.least_usd, a.machine, a.accelerator, a.per_node) <
             std::tie(b.least_usd, b.machine, b.accelerator, b.per_node);
    });
    for (const Candidate& c : able) {
      const double bound = dearest_kept(c.accelerator);
      if (c.least_usd >= bound)
        reject("costs more than what is kept, at the least");
      else
        try_it(c, bound);
    }
    return std::move(answer_);
  }

 private:
  void reject(const std::string& reason) { ++answer_.rejected[reason]; }

  bool allowed(const std::string& accelerator) const {
    const auto& list = question_.accelerators;
    return list.empty() || std::find(list.begin(), list.end(), accelerator) != list.end();
  }

  void collect(bool on_accelerators) {
    const ClusterSpec& cluster = file_.scenario.cluster;
    const reckon::Service service = planning::service_of(cluster);
    for (const Machine& m : catalog_.machines) {
      if (m.provider != cluster.provider || !m.offered_under(service)) continue;
      if (!on_accelerators) {
        if (m.accelerator.empty()) candidates_.push_back({m.name, "", 0, false});
        continue;
      }
      if (!m.accelerator.empty()) {
        if (allowed(m.accelerator))
          candidates_.push_back({m.name, m.accelerator, m.accelerator_count, true});
        continue;
      }
      for (const Accelerator& a : catalog_.accelerators)
        if (a.kind == AcceleratorKind::gpu && allowed(a.name))
          for (const int count : catalog_.allowed_counts(service, m.name, a.name))
            candidates_.push_back({m.name, a.name, count, false});
    }
    answer_.considered = static_cast<int>(candidates_.size());
  }

  Expected<ServingPlan> plan_of(const Candidate& c, int replicas) {
    Scenario& s = file_.scenario;
    const int each = std::max(1, c.per_node);
    const int nodes = (replicas + each - 1) / each;
    PoolSpec& pool = *pool_of(s);
    pool.machine = MachineByName{c.machine};
    pool.accelerator.reset();
    if (!c.accelerator.empty() && !c.built_in)
      pool.accelerator = AcceleratorSpec{c.accelerator, c.per_node};
    pool.nodes = {nodes, nodes, nodes};
    pool.autoscaling = false;
    pool.pricing = CapacityType::on_demand;
    s.serving->replicas.initial = s.serving->replicas.min = s.serving->replicas.max = replicas;
    return make_serving_plan(file_, catalog_);
  }

  /// Offered, large enough and fast enough; its price and least number of replicas are filled in.
  bool is_able(Candidate& c) {
    const auto plan = plan_of(c, 1);
    if (!plan) {
      reject("not offered so in the region, or without the precision");
      return false;
    }
    answer_.model = plan->model().model.name();
    if (check_serving_memory(*plan, file_.places)) {
      reject("does not fit in memory");
      return false;
    }
    if (batch_time(*plan, 1).count() > goal_.value) {
      reject("one request alone takes longer than the goal");
      return false;
    }
    const NodePrice& price = plan->pool().price;
    if (!price.known) {
      reject("its price is unknown");
      return false;
    }
    c.usd_per_node = to_usd(charge(price.machine, to_clock(Seconds{3600}))).v +
                     to_usd(charge(price.accelerators, to_clock(Seconds{3600}))).v;
    // One part in a million below the rate at which a queue grows for ever.
    c.least = std::max(1, static_cast<int>(std::ceil(answer_.rate / replica_capacity(*plan))));
    c.least_usd = usd_of(c, c.least);
    if (c.least <= kMostReplicas) return true;
    reject("needs more than 4,096 replicas");
    return false;
  }

  static double usd_of(const Candidate& c, int replicas) {
    const int each = std::max(1, c.per_node);
    const int nodes = (replicas + each - 1) / each;
    return c.usd_per_node * nodes;
  }

  /// What a candidate has to be cheaper than: the kept one of its accelerator, or the last one
  /// kept.
  double dearest_kept(const std::string& accelerator) const {
    for (const ServingChoice& choice : answer_.choices)
      if (choice.accelerator == accelerator) return choice.usd_per_hour;
    if (answer_.choices.size() < question_.keep) return std::numeric_limits<double>::infinity();
    return answer_.choices.back().usd_per_hour;
  }

  /// nullopt: the goal does not hold with so many.
  std::optional<ServingForecast> holds_with(const Candidate& c, int replicas) {
    const auto plan = plan_of(c, replicas);
    if (!plan) return std::nullopt;
    ServingForecast forecast = forecast_serving(*plan, question_.seed);
    const bool good = forecast.refused_share == 0 && evaluate(goal_, forecast).passed;
    return good ? std::optional(std::move(forecast)) : std::nullopt;
  }

  void try_it(const Candidate& c, double bound) {
    int fails = c.least - 1, holds = c.least;
    std::optional<ServingForecast> found;
    while (!(found = holds_with(c, holds))) {
      fails = holds;
      holds = holds < 4 ? holds + 1 : holds + holds / 2;
      if (usd_of(c, holds) >= bound) return reject("costs more than what is kept");
      if (holds > 4 * c.least + 16) return reject("no number of replicas holds the goal");
    }
    while (holds - fails > 1) {
      const int middle = fails + (holds - fails) / 2;
      if (auto better = holds_with(c, middle)) {
        holds = middle;
        found = std::move(better);
      } else {
        fails = middle;
      }
    }
    keep(c, holds, std::move(*found));
  }

  void keep(const Candidate& c, int replicas, ServingForecast forecast) {
    const int each = std::max(1, c.per_node);
    ServingChoice choice{
        c.machine,           c.accelerator,      c.per_node, replicas, (replicas + each - 1) / each,
        usd_of(c, replicas), std::move(forecast)};
    auto& choices = answer_.choices;
    std::erase_if(choices, [&](const ServingChoice& o) { return o.accelerator == c.accelerator; });
    choices.push_back(std::move(choice));
    std::stable_sort(
        choices.begin(), choices.end(), [](const ServingChoice& a, const ServingChoice& b) {
          return std::tie(a.usd_per_hour, a.machine) < std::tie(b.usd_per_hour, b.machine);
        });
    if (choices.size() > question_.keep) choices.pop_back();
  }

  const Catalog& catalog_;
  const ServingQuestion& question_;
  ScenarioFile file_;
  Expectation goal_;
  std::vector<Candidate> candidates_;
  ServingAnswer answer_;
};

}  // namespace

Expected<ServingAnswer> plan_serving(const ScenarioFile& file, const Catalog& catalog,
                                     const ServingQuestion& question) {
  // The question itself has to be a right one: its own pool is tried first.
  const auto own = make_serving_plan(file, catalog);
  if (!own) return tl::unexpected(own.error());
  return Search(file, catalog, question).run(own->pool().accelerator.has_value());
}

}  // namespace reckon::planner
