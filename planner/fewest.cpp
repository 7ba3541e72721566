#include "planner/fewest.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "sim/step/step.h"

namespace reckon::planner {
namespace {

constexpr int kLook = 32;            // replications of a first look
constexpr double kFarOff = 1.25;     // times the limit: then a first look is enough
constexpr std::size_t kLayouts = 3;  // of each number of accelerators, by each order

using BoughtFrom = std::pair<std::ptrdiff_t, std::string>;  // place of the provider, accelerator

std::int64_t accelerators(const Space& space, const Candidate& c) {
  return std::int64_t{space.split(c).nodes} * std::max(1, space.site(c).hardware.per_node);
}

double over(const std::optional<Limit>& limit, double value) {
  return limit ? value / limit->value : 0;
}

/// The split with the fewest accelerators of a site, of equals the one with the shortest training.
const Split* smallest(const Site& site) {
  const Split* least = nullptr;
  const auto key = [](const Split& s) {
    return std::tuple(s.nodes, s.step_seconds * double(s.steps));
  };
  for (const Split& s : site.splits)
    if (least == nullptr || key(s) < key(*least)) least = &s;
  return least;
}

class Finder {
 public:
  Finder(const Question& question, const Space& space, Evaluator& evaluator, int replications)
      : question_(question), space_(space), evaluator_(evaluator), replications_(replications) {}

  std::vector<FewestRow> rows() {
    std::map<BoughtFrom, FewestRow> by_kind;
    for (const Site& site : space_.sites) look_at(site, by_kind);
    std::vector<FewestRow> out;
    for (auto& [kind, row] : by_kind) {
      if (row.fits) find_meeting(kind, row);
      out.push_back(std::move(row));
    }
    const auto count = [](const FewestRow& r) {
      if (!r.fits) return std::numeric_limits<std::int64_t>::max();
      return std::int64_t{r.fits->split.nodes} * std::max(1, r.fits->hardware.per_node);
    };
    std::ranges::stable_sort(out, {}, count);
    return out;
  }

 private:
  /// In the question's order of providers.
  std::ptrdiff_t place_of(const Provider& provider) const {
    const std::vector<Provider>& all = question_.may.providers;
    return std::ranges::find(all, provider) - all.begin();
  }

  void look_at(const Site& site, std::map<BoughtFrom, FewestRow>& by_kind) {
    const Hardware& h = site.hardware;
    FewestRow& row = by_kind[{place_of(h.provider), h.accelerator}];
    row.provider = h.provider;
    row.accelerator = h.accelerator;
    const Split* split = smallest(site);
    if (split == nullptr) {
      if (row.fits || !row.why_not.empty()) return;
      std::int64_t most = 0;
      for (const auto& [why, count] : site.rejected)
        if (count > most) {
          most = count;
          row.why_not = why;
        }
      return;
    }
    const auto key = [](const Hardware& on, const Split& s) {
      return std::tuple(std::int64_t{s.nodes} * std::max(1, on.per_node),
                        s.step_seconds * double(s.steps));
    };
    if (row.fits && key(row.fits->hardware, row.fits->split) <= key(h, *split)) return;
    row.why_not.clear();
    row.fits.emplace();
    row.fits->hardware = h;
    row.fits->split = *split;
    if (!site.offers.empty()) row.fits->offer = site.offers.front();
  }

  /// Numbers of accelerators ascending; of each a first look, then all replications.
  void find_meeting(const BoughtFrom& kind, FewestRow& row) {
    std::map<std::int64_t, std::vector<Candidate>> by_count;
    bool any = false;
    for (const Candidate& c : space_.candidates) {
      const Hardware& h = space_.site(c).hardware;
      if (BoughtFrom{place_of(h.provider), h.accelerator} != kind) continue;
      any = true;
      if (!c.proven_late && !c.proven_dear) by_count[accelerators(space_, c)].push_back(c);
    }
    for (auto& [count, some] : by_count) {
      auto best = best_of(promising(std::move(some)));
      if (!best) continue;
      row.meets = ranked(space_, std::move(*best));
      row.why_not.clear();
      return;
    }
    row.why_not = !any               ? "no price is known, or its quota is too small"
                  : by_count.empty() ? "a lower bound proves that it misses a limit"
                                     : "misses a limit with every number of nodes";
  }

  /// Those that seem to meet all limits before those that do not; the fastest of them with a
  /// deadline, else the best; with a budget besides also the cheapest.
  std::vector<Candidate> promising(std::vector<Candidate> some) const {
    const auto misses = [&](const Candidate& c) {
      return over(question_.deadline, c.time) > 1 || over(question_.budget, c.cost) > 1;
    };
    std::ranges::stable_sort(some, {}, [&](const Candidate& c) {
      return std::pair(misses(c), question_.deadline ? c.time : c.estimate);
    });
    if (some.size() <= kLayouts) return some;
    const auto rest = some.begin() + std::ptrdiff_t(kLayouts);
    std::size_t keep = kLayouts;
    if (question_.deadline && question_.budget) {
      std::stable_sort(rest, some.end(), [&](const Candidate& a, const Candidate& b) {
        return std::pair(misses(a), a.cost) < std::pair(misses(b), b.cost);
      });
      keep = std::min(2 * kLayouts, some.size());
    }
    some.resize(keep);
    return some;
  }

  /// The best of those that meet all limits; nullopt: none does.
  std::optional<Evaluated> best_of(const std::vector<Candidate>& some) {
    std::vector<Candidate> near;
    for (const Evaluated& e : evaluator_.evaluate(some, std::min(kLook, replications_)))
      if (e.refused.empty() && over(question_.deadline, e.late) < kFarOff &&
          over(question_.budget, e.dear) < kFarOff)
        near.push_back(e.candidate);
    if (near.empty()) return std::nullopt;
    auto whole = evaluator_.evaluate(near, replications_);
    const auto best = std::ranges::min_element(whole, is_better);
    if (!best->meets_all() || !std::isfinite(best->score)) return std::nullopt;
    return std::move(*best);
  }

  const Question& question_;
  const Space& space_;
  Evaluator& evaluator_;
  int replications_;
};

}  // namespace

bool Fewest::meets_all() const {
  return std::ranges::any_of(rows, [](const FewestRow& r) { return r.meets.has_value(); });
}

FewestServers fewest_servers(const Plan& plan, const NetworkModel& network) {
  constexpr double kNoGain = 0.99;
  FewestServers out;
  Plan changed = plan;
  PlannedWorkload& job = changed.only_job();
  const int most = std::max(64, 2 * job.strategy.workers);
  for (int servers = 1; servers <= most && !(out.enough && out.no_gain); ++servers) {
    job.strategy.servers->count = servers;
    for (PlannedPool& pool : changed.pools)
      if (pool.role == Role::parameter_server)
        pool.nodes_initial = pool.nodes_min = pool.nodes_max = servers;
    const StepEstimate step = estimate_step(changed, job, network);
    if (!out.no_gain && !out.steps.empty() && step.step > kNoGain * out.steps.back())
      out.no_gain = servers - 1;
    if (!out.enough && step.bottleneck != Bottleneck::parameter_server) out.enough = servers;
    out.steps.push_back(step.step);
    out.tried = servers;
  }
  return out;
}

Expected<Fewest> fewest(const Question& question, const Catalog& catalog,
                        const NetworkModel& network, const PlannerOptions& options) {
  const ForecastSpec& given = question.file.scenario.forecast;
  Fewest out;
  out.scenario = question.file.scenario.name;
  out.deadline = question.deadline;
  out.budget = question.budget;
  out.seed = options.seed.value_or(given.seed);
  out.replications = options.replications.value_or(given.replications);
  Question asked = question;
  const SpaceOptions how{out.seed, out.replications, options.threads};
  Space space = make_space(asked, catalog, network, how);
  if (space.candidates.empty() && !asked.budget && needs_price(asked.objective)) {
    asked.objective = Objective::time;  // nothing has a price: of equals the fastest is taken
    space = make_space(asked, catalog, network, how);
  }
  const bool nothing =
      std::ranges::all_of(space.sites, [](const Site& site) { return !site.refused.empty(); });
  if (!space.sites.empty() && nothing) return tl::unexpected(space.sites.front().refused);
  Evaluator evaluator({asked, catalog, network, space, out.seed, options.threads});
  out.rows = Finder(asked, space, evaluator, out.replications).rows();
  if (traits_of(question.file.scenario.workload->strategy.kind).servers)
    if (const auto plan = planned(question.base, question.file, catalog))
      if (plan->pool_with(Role::parameter_server) != nullptr &&
          plan->only_job().strategy.server_count() > 0)
        out.servers = fewest_servers(*plan, network);
  return out;
}

}  // namespace reckon::planner
