#include "planner/serving.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "sim/base/check.h"
#include "sim/base/unit_text.h"
#include "sim/forecast/forecast.h"
#include "sim/scenario/resolve/draft.h"
#include "sim/scenario/resolve/pricing.h"
#include "sim/scenario/yaml/scenario_yaml.h"

namespace reckon::planner {
namespace {

constexpr double kRequests = 200'000;              // of one try: its p99 rests on 2,000 of them
constexpr double kShortest = 60, kLongest = 3600;  // seconds
constexpr double kServingHour = 3600;
constexpr double kAlike = 1e-9;  // prices that differ by rounding alone
constexpr int kMostReplicas = 4096;
constexpr const char* kDearerThanKept = "costs more than what is kept";

struct Candidate {
  std::string machine, accelerator;
  int per_node = 0;
  bool built_in = false;  // the machine brings its accelerators
  bool own = false;       // the scenario's pool as it is
  bool priced = true;
  int least = 1;                           // replicas, below which no queue is stable
  double usd_per_node = 0, least_usd = 0;  // an hour
};

/// So many replicas of a candidate at most, and what keeps more away.
struct Most {
  int replicas = kMostReplicas;
  const char* why = "needs more than 4,096 replicas";

  void at(int others, const char* reason) {
    if (others >= replicas) return;
    replicas = others;
    why = reason;
  }
  void nodes_at(double nodes, int per_node, const char* reason) {
    const double replicas_of = std::max(0.0, std::floor(nodes)) * per_node;
    if (replicas_of < kMostReplicas) at(static_cast<int>(replicas_of), reason);
  }
};

class Search {
 public:
  Search(const ScenarioFile& file, const Catalog& catalog, const ServingQuestion& question,
         Seconds period)
      : catalog_(catalog), question_(question), file_(file) {
    Scenario& s = file_.scenario;
    const PoolSpec* serves = serving_pool(s);
    RECKON_CHECK(serves != nullptr);  // make_serving_plan() has seen it
    own_ = *serves;
    at_ = std::size_t(serves - s.cluster.pools.data());
    hours_ = period.count() / kServingHour;
    goal_ = parse_expectation(s.serving->goal).value();
    const auto& rates = s.serving->requests_per_second;
    answer_.goal = s.serving->goal;
    answer_.rate = *std::max_element(rates.begin(), rates.end());
    s.serving->requests_per_second = {answer_.rate};
    s.serving->period = Seconds{std::clamp(kRequests / answer_.rate, kShortest, kLongest)};
    s.serving->replicas = {};
    s.expect.clear();
  }

  void keep_to(std::optional<double> budget) { budget_ = budget; }

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
      const Most most = most_of(c);
      if (c.least > most.replicas)
        reject(most.why);
      else
        try_it(c, most);
    }
    return std::move(answer_);
  }

 private:
  void reject(const std::string& reason) { ++answer_.rejected[reason]; }

  bool allowed(const std::string& accelerator) const {
    const auto& list = question_.accelerators;
    return list.empty() || std::find(list.begin(), list.end(), accelerator) != list.end();
  }

  /// Its machines may be nobody else's, or at a price of its own. What it has in common with one of
  /// the catalog is tried once, as the own pool.
  void collect_own() {
    Candidate own{own_.name, "", 0, false, true};
    if (const auto* named = std::get_if<MachineByName>(&own_.machine)) own.machine = named->name;
    const auto plan = make_serving_plan(file_, catalog_).value();
    if (plan.pool().accelerator) own.accelerator = plan.pool().accelerator->name;
    own.per_node = plan.pool().accelerators_per_node;
    if (!own.accelerator.empty() && !allowed(own.accelerator)) return;
    std::erase_if(candidates_, [&](const Candidate& c) {
      return std::tie(c.machine, c.accelerator, c.per_node) ==
             std::tie(own.machine, own.accelerator, own.per_node);
    });
    candidates_.push_back(own);
  }

  void collect(bool on_accelerators) {
    const ClusterSpec& cluster = file_.scenario.cluster;
    const ServiceRules* rules = planning::service_of(cluster, catalog_);
    if (rules == nullptr) return;
    const reckon::Service& service = rules->id;
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
    collect_own();
    answer_.considered = static_cast<int>(candidates_.size());
  }

  Expected<ServingPlan> plan_of(const Candidate& c, int replicas) {
    Scenario& s = file_.scenario;
    const int each = std::max(1, c.per_node);
    const int nodes = (replicas + each - 1) / each;
    PoolSpec& pool = s.cluster.pools[at_];
    pool = own_;
    if (!c.own) {
      pool.machine = MachineByName{c.machine};
      pool.accelerator.reset();
      if (!c.accelerator.empty() && !c.built_in)
        pool.accelerator = AcceleratorSpec{c.accelerator, c.per_node};
    }
    pool.nodes = {nodes, nodes, nodes};
    pool.autoscaling = false;
    pool.pricing = CapacityType::on_demand;
    s.serving->replicas.initial = s.serving->replicas.min = s.serving->replicas.max = replicas;
    return make_serving_plan(file_, catalog_);
  }

  /// Offered, large enough and fast enough; its price and least number of replicas are filled in.
  bool is_able(Candidate& c) {
    if (!c.own && file_.scenario.serving->stack == kMeasuredStack) {
      reject("what a batch takes was measured on the scenario's own pool");
      return false;
    }
    const auto plan = plan_of(c, 1);
    if (!plan) {
      reject("not offered so in the region, or without the precision");
      return false;
    }
    answer_.model = plan->model.name();
    if (check_serving_memory(*plan, file_.places)) {
      reject("does not fit in memory");
      return false;
    }
    if (batch_time(*plan, 1).count() > goal_.value) {
      reject("one request alone takes longer than the goal");
      return false;
    }
    const NodePrice& price = plan->pool().price;
    c.priced = price.known;
    if (!price.known && !is_on_premises(c)) {
      reject("its price is unknown");
      return false;
    }
    c.usd_per_node = to_usd(charge(price.machine, to_clock(Seconds{3600}))).v +
                     to_usd(charge(price.accelerators, to_clock(Seconds{3600}))).v;
    // One part in a million below the rate at which a queue grows for ever.
    c.least = std::max(1, static_cast<int>(std::ceil(answer_.rate / replica_capacity(*plan))));
    c.least_usd = usd_of(c, c.least);
    return true;
  }
  bool is_on_premises(const Candidate& c) const {
    return c.own && catalog_.rules_of(file_.scenario.cluster.provider).owned;
  }

  /// Of the prices of what is kept, the budget, the quota and the machines that are there.
  Most most_of(const Candidate& c) const {
    Most most;
    const int each = std::max(1, c.per_node);
    most.at(4 * c.least + 16, "no number of replicas holds the goal");
    if (is_on_premises(c)) most.nodes_at(own_.nodes.max, each, "more nodes than the pool has");
    const Scenario& s = file_.scenario;
    if (s.plan && c.per_node > 0) {
      const std::string place =
          fmt::format("{}/{}/{}", to_text(s.cluster.provider), s.cluster.region, c.accelerator);
      for (const std::string& key : {place, fmt::format("{}/{}", place, to_text(own_.pricing))})
        if (const auto quota = s.plan->quota.find(key); quota != s.plan->quota.end())
          most.nodes_at(double(quota->second) / each, each, "above the quota");
    }
    if (c.usd_per_node <= 0) return most;
    if (budget_) most.nodes_at(*budget_ / hours_ / c.usd_per_node, each, "above the budget");
    const double bound = dearest_kept(c.accelerator);
    if (std::isfinite(bound))
      most.nodes_at(std::ceil(bound / c.usd_per_node - kAlike) - 1, each, kDearerThanKept);
    return most;
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

  void try_it(const Candidate& c, const Most& most) {
    std::map<int, ServingForecast> found;
    const auto fewest = fewest_that_hold(c.least, most.replicas, [&](int replicas) {
      auto forecast = holds_with(c, replicas);
      if (forecast) found.emplace(replicas, std::move(*forecast));
      return forecast.has_value();
    });
    if (!fewest) return reject(most.why);
    keep(c, *fewest, std::move(found.at(*fewest)));
  }

  void keep(const Candidate& c, int replicas, ServingForecast forecast) {
    const int each = std::max(1, c.per_node);
    ServingChoice choice{.machine = c.machine,
                         .accelerator = c.accelerator,
                         .own = c.own,
                         .per_node = c.per_node,
                         .replicas = replicas,
                         .nodes = (replicas + each - 1) / each,
                         .priced = c.priced,
                         .usd_per_hour = usd_of(c, replicas),
                         .forecast = std::move(forecast)};
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
  PoolSpec own_;
  std::size_t at_ = 0;            // of the pool that serves, in the scenario
  double hours_ = 1;              // of the period
  std::optional<double> budget_;  // USD for it
  Expectation goal_;
  std::vector<Candidate> candidates_;
  ServingAnswer answer_;
};

/// nullopt: none, or that of a training.
Expected<std::optional<double>> serving_budget_of(const ScenarioFile& file) {
  const Scenario& s = file.scenario;
  if (!s.plan || s.plan->budget.empty() || trains(s)) return std::nullopt;
  const std::string& text = s.plan->budget;
  const auto usd = planning::to_usd_rate(*parse_money(text.substr(0, text.find('@'))), s.prices);
  if (usd) return usd->v;
  return tl::unexpected(Diagnostics{{Severity::error, file.places.find("plan.budget"), usd.error(),
                                     "prices: {currency: EUR, usd_rate: 0.92}"}});
}

}  // namespace

std::optional<int> fewest_that_hold(int least, int most, const std::function<bool(int)>& holds) {
  if (least > most) return std::nullopt;
  int fails = least - 1, next = least;
  while (!holds(next)) {
    if (next == most) return std::nullopt;
    fails = next;
    next = std::min(most, next < 4 ? next + 1 : next + next / 2);
  }
  while (next - fails > 1) {
    const int middle = fails + (next - fails) / 2;
    (holds(middle) ? next : fails) = middle;
  }
  return next;
}

Expected<ServingAnswer> plan_serving(const ScenarioFile& file, const Catalog& catalog,
                                     const ServingQuestion& question) {
  // The question itself has to be a right one: its own pool is tried too.
  const auto own = make_serving_plan(file, catalog);
  if (!own) return tl::unexpected(own.error());
  const auto budget = serving_budget_of(file);
  if (!budget) return tl::unexpected(budget.error());
  Search search(file, catalog, question, own->period);
  search.keep_to(*budget);
  return search.run(own->pool().accelerator.has_value());
}

}  // namespace reckon::planner
