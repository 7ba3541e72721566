#include "planner/search/candidates.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <tuple>

#include "planner/search/outlook.h"
#include "sim/base/parallel.h"
#include "sim/cluster/life/life.h"

namespace reckon::planner {
namespace {

constexpr double kUnknown = std::numeric_limits<double>::infinity();

/// A search that races simulates about so many lives for each replication of a forecast: the first
/// wave, the finalists, the front, and the shorter lives of the rounds (planner/search/race.cpp).
constexpr double kForecasts = 48;
constexpr int kReplicationsOfRace = 40;
/// A quantile rests on at least so many replications beyond it: 200 at 95 %.
constexpr double kBeyondQuantile = 10;
/// Their lives say how long the search's are.
constexpr std::size_t kTypical = 64;
/// Of each way of buying, so many are looked at more closely, under so many draws.
constexpr std::size_t kLookedAt = 1024;
constexpr int kDraws = 64;
/// Events of a life, besides those of its job: each node is asked for, comes, and is given back;
/// what interrupts is noticed, happens, and a node is asked for and waited for again.
constexpr double kEventsOfJob = 30, kEventsOfNode = 4, kEventsOfInterruption = 6;

Interruptions lived_through(const Space& space, const Candidate& c) {
  const int nodes = space.split(c).nodes;
  const Site& site = space.site(c);
  Interruptions by = interruptions_of(site.outside[std::size_t(nodes)], space.offer(c), nodes);
  by.restart += wait_for_spot(site, space.offer(c), nodes);
  // A spare node takes the place of one that is lost, or the job goes on without.
  const auto& how = space.offer(c).restart;
  const bool smaller = how && how->kind == RestartKind::elastic;
  if (smaller || nodes_paid(space.offer(c), space.split(c)) > nodes)
    by.restart -= site.outside[std::size_t(nodes)].node_seconds;
  return by;
}

Candidate candidate_of(const Question& question, const Space& space, std::size_t site_index,
                       std::size_t split_index, std::size_t offer_index) {
  Candidate c;
  c.site = std::uint32_t(site_index);
  c.split = std::uint32_t(split_index);
  c.offer = std::uint32_t(offer_index);
  const Site& site = space.site(c);
  const Split& split = space.split(c);
  const Offer& offer = space.offer(c);
  const double work = double(split.steps) * split.step_seconds;
  const double start = site.outside[std::size_t(split.nodes)].start_seconds +
                       wait_for_spot(site, offer, split.nodes);
  c.time = start + work * stretch_of(lived_through(space, c), work);
  const int base = base_nodes(offer, split.nodes);
  const auto usd_second = [](HourlyRate each, int nodes) {
    return double(each.nano_usd_per_hour) * 1e-9 / 3600 * nodes;
  };
  const auto workers = [&](int nodes, int reserved, HourlyRate lowest, HourlyRate price) {
    const int covered = std::min(nodes, reserved);
    return usd_second(lowest, covered) + usd_second(price, nodes - covered);
  };
  const Mix& mix = offer.mix;
  double rate = workers(base, mix.base_reserved, mix.base_lowest, mix.base_price);
  for (std::size_t p = 0; p < offer.pools.size(); ++p)
    if (std::ranges::count(site.fallbacks, p) == 0)
      rate += p == site.worker ? workers(nodes_paid(offer, split) - base, offer.reserved,
                                         offer.pools_lowest[p], offer.pools[p])
                               : usd_second(offer.pools[p], split.parameter_servers);
  c.cost = offer.known && std::isfinite(c.time) ? rate * c.time : kUnknown;
  // A life is cut at the horizon: it never ended.
  const bool ends = c.time <= LifeOptions{}.horizon.count();
  c.estimate = ends ? score_of(question.objective, c.time, c.cost) : kUnknown;
  return c;
}

/// Order of what is tried first. Equals stand in the order of what they are, so that neither the
/// catalog's order nor threads decide.
bool more_promising(const Question& question, const Candidate& a, const Candidate& b) {
  const auto key = [&](const Candidate& c) {
    const bool late = question.deadline && c.time > question.deadline->value;
    const bool dear = question.budget && c.cost > question.budget->value;
    return std::tuple(late || dear, c.estimate, c.time, c.site, c.split, c.offer);
  };
  return key(a) < key(b);
}

/// Sites and their candidates, without bounds.
Space every_candidate(const Question& question, const Catalog& catalog, const NetworkModel& network,
                      int threads) {
  Space space;
  const HardwareList hardware = hardware_for(question, catalog);
  space.sites.resize(hardware.kinds.size());
  parallel_for(hardware.kinds.size(), threads, [&](std::size_t k) {
    space.sites[k] = make_site(question, hardware.kinds[k], catalog, network);
  });
  if (hardware.nowhere > 0) {
    space.considered += std::int64_t(hardware.nowhere);
    space.rejected["no region is known to offer the machine"] += std::int64_t(hardware.nowhere);
  }
  if (hardware.forbidden > 0) {
    space.considered += std::int64_t(hardware.forbidden);
    space.rejected[kForbidden] += std::int64_t(hardware.forbidden);
  }
  for (std::size_t k = 0; k < space.sites.size(); ++k) {
    const Site& site = space.sites[k];
    space.considered += site.considered;
    for (const auto& [reason, count] : site.rejected)
      if (count > 0) space.rejected[reason] += count;
    for (std::size_t s = 0; s < site.splits.size(); ++s) {
      // Shares of few nodes round to the same ones.
      std::set<std::tuple<std::string_view, std::string_view, CapacityType, int,
                          std::optional<Seconds>, std::string>>
          mixes;
      std::set<std::tuple<std::string_view, std::string_view, CapacityType, int, int, std::string>>
          pools;
      for (std::size_t o = 0; o < site.offers.size(); ++o) {
        const Split& split = site.splits[s];
        const Offer& offer = site.offers[o];
        const int base = base_nodes(offer, split.nodes);
        const bool is_mix = base > 0 || offer.mix.patience;
        if (is_mix && !mixes
                           .emplace(offer.region, offer.zone, offer.mix.base, base,
                                    offer.mix.patience, restart_words(offer))
                           .second)
          ++space.rejected["a mix of the same nodes as another"];
        else if (base == split.nodes)
          ++space.rejected["a mix that leaves no node to be spot"];
        else if (!may_restart(offer, split))
          ++space.rejected["the job cannot go on so after a loss"];
        else if (!within_quotas(offer, split, site.hardware.per_node))
          ++space.rejected[kOverQuota];
        else if (question.max_nodes &&
                 nodes_at_most(offer, split) + server_nodes(question, split) > *question.max_nodes)
          ++space.rejected[kTooManyNodes];
        else if (const PoolBounds& b = offer.bounds;
                 !is_mix && !question.may.bounds.empty() &&
                 !pools
                      .emplace(offer.region, offer.zone, offer.pricing, b.least_nodes(split.nodes),
                               b.most_nodes(split.nodes), restart_words(offer))
                      .second)
          ++space.rejected["a pool of the same nodes as another"];
        else
          space.candidates.push_back(candidate_of(question, space, k, s, o));
      }
    }
  }
  return space;
}

int fewest_replications(const Question& question) {
  int fewest = kReplicationsOfRace;
  for (const auto& limit : {question.deadline, question.budget})
    if (limit && limit->probability)
      fewest = std::max(fewest, int(std::ceil(kBeyondQuantile / (1 - *limit->probability) - 1e-9)));
  if (is_of_p95(question.objective)) fewest = std::max(fewest, int(kBeyondQuantile / 0.05));
  return fewest;
}

/// As many as were asked for, or what the effort does for.
int affordable_replications(const Question& question, const Space& space,
                            const SpaceOptions& options) {
  const std::size_t n = std::min(kTypical, space.candidates.size());
  if (options.effort <= 0 || n == 0) return options.replications;
  double events = 0;
  for (std::size_t k = 0; k < n; ++k) events += events_of(space, space.candidates[k]);
  const double affordable = options.effort / (kForecasts * events / double(n));
  if (affordable >= options.replications) return options.replications;
  return std::min(options.replications, std::max(fewest_replications(question), int(affordable)));
}

void set_bounds(const Question& question, Space& space, const SpaceOptions& options) {
  Draws draws(options.seed, space.replications);
  for (const Site& site : space.sites)
    if (!site.splits.empty()) draws.draw(site);
  std::vector<LeastFactors> least(space.sites.size());
  parallel_for(least.size(), options.threads, [&](std::size_t k) {
    if (!space.sites[k].splits.empty() && !space.sites[k].offers.empty())
      least[k] = least_factors(question, space.sites[k], draws);
  });
  for (Candidate& c : space.candidates) {
    const Bounds b =
        bounds_of(question, space.site(c), least[c.site], space.split(c), space.offer(c));
    c.bound = b.score;
    c.proven_late = question.deadline && b.deadline > question.deadline->value;
    c.proven_dear = question.budget && b.budget > question.budget->value;
  }
}

}  // namespace

double events_of(const Space& space, const Candidate& c) {
  const double longest = LifeOptions{}.horizon.count();
  const double interruptions = std::min(c.time, longest) / lived_through(space, c).every;
  return kEventsOfJob + kEventsOfNode * space.split(c).nodes +
         kEventsOfInterruption * interruptions;
}

Space make_space(const Question& question, const Catalog& catalog, const NetworkModel& network,
                 const SpaceOptions& options) {
  Space space = every_candidate(question, catalog, network, options.threads);
  std::ranges::sort(space.candidates, [&](const Candidate& a, const Candidate& b) {
    return more_promising(question, a, b);
  });
  Outlook outlook({question, catalog, network, space, options.seed, options.threads},
                  std::min(kDraws, options.replications));
  if (space.candidates.size() > kTypical) outlook.reorder(space.candidates, kLookedAt);
  space.replications = affordable_replications(question, space, options);
  set_bounds(question, space, options);
  std::stable_partition(space.candidates.begin(), space.candidates.end(),
                        [](const Candidate& c) { return !c.proven_late && !c.proven_dear; });
  return space;
}

Expected<Plan> plan_of(const Question& question, const Catalog& catalog, const Space& space,
                       const Candidate& c) {
  return plan_with(question, changes_of(question, space, c), catalog);
}

std::vector<Change> changes_of(const Question& question, const Space& space, const Candidate& c) {
  return changes_for(question, space.site(c).hardware, space.offer(c), space.split(c));
}

}  // namespace reckon::planner
