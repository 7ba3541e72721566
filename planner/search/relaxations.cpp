#include "planner/search/relaxations.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <tuple>

#include "planner/search/rivals.h"
#include "sim/base/unit_text.h"

namespace reckon::planner {
namespace {

/// So many that need the least are forecast before the limit counts as no way out.
constexpr std::size_t kRelaxationsTried = 8;
constexpr double kNoNumber = std::numeric_limits<double>::quiet_NaN();

struct Need {
  double asked = kNoNumber, needed = kNoNumber;
  std::string of;               // of a quota its place
  std::vector<Shortfall> also;  // of quotas the others, worst first
};

struct EarlyLimit {
  LimitKind kind = LimitKind::quota;
  const char* reason;  // of what it left out
  std::function<void(Question&)> lift;
  std::function<Need(const Space&, const Candidate&)> need;
};

/// The quotas that the candidate exceeds, by the largest factor first.
Need quotas_needed(const Question& q, const Space& space, const Candidate& c) {
  const Hardware& h = space.site(c).hardware;
  const Offer& offer = space.offer(c);
  const Split& split = space.split(c);
  std::vector<Shortfall> exceeded;
  const auto look = [&](std::optional<CapacityType> type, int nodes) {
    const int quota = quota_for(q, h.provider, offer.region, h.accelerator, type);
    const double used = double(nodes) * h.per_node;
    if (used > quota)
      exceeded.push_back(
          {fmt::format("{}/{}/{}{}", to_text(h.provider), offer.region, h.accelerator,
                       type ? fmt::format("/{}", to_text(*type)) : ""),
           double(quota), used});
  };
  look(std::nullopt, nodes_at_most(offer, split));
  for (const CapacityType type :
       {CapacityType::on_demand, CapacityType::spot, CapacityType::reserved})
    look(type, nodes_at_most(offer, split, type));
  if (exceeded.empty()) return {};
  std::ranges::stable_sort(exceeded, std::ranges::greater{}, [](const Shortfall& s) {
    return s.needed / s.asked;
  });  // of none: infinite
  const Shortfall worst = exceeded.front();
  exceeded.erase(exceeded.begin());
  return {worst.asked, worst.needed, worst.of, std::move(exceeded)};
}

/// The least that anything needs which an accelerator of the kind has.
std::optional<MemoryEstimate> least_over_limit(const Question& q, const Space& space) {
  std::optional<MemoryEstimate> least;
  const auto key = [&](const MemoryEstimate& m) {
    return q.memory ? m.required().v : m.required() / m.available;
  };
  for (const Site& site : space.sites)
    if (site.closest && site.closest->fits_at(kRiskOfAPlan) &&
        (!least || key(*site.closest) < key(*least)))
      least = site.closest;
  return least;
}

Need memory_needed(const Question& q, const MemoryEstimate& least) {
  if (q.memory) return {q.memory->v, least.required().v, "", {}};
  return {*q.memory_share, least.required() / least.available, "share", {}};
}

void raise_memory(Question& q, const MemoryEstimate& least) {
  constexpr double kRounding = 1 + 1e-9;
  if (q.memory) q.memory = least.required() * kRounding;
  if (q.memory_share)
    q.memory_share = std::min(1.0, least.required() / least.available * kRounding);
}

std::vector<EarlyLimit> limits_of(const Question& q, const Space& space) {
  std::vector<EarlyLimit> out;
  if (!q.quota.empty())
    out.push_back({LimitKind::quota, kOverQuota, [](Question& other) { other.quota.clear(); },
                   [&q](const Space& s, const Candidate& c) { return quotas_needed(q, s, c); }});
  if (q.max_nodes)
    out.push_back(
        {LimitKind::nodes, kTooManyNodes, [](Question& other) { other.max_nodes.reset(); },
         [&q](const Space& s, const Candidate& c) {
           const int nodes = nodes_at_most(s.offer(c), s.split(c)) + server_nodes(q, s.split(c));
           return Need{double(*q.max_nodes), double(nodes), "", {}};
         }});
  if (const auto least = least_over_limit(q, space); least && (q.memory || q.memory_share))
    out.push_back(
        {LimitKind::memory, kTooLittleMemory,
         [least](Question& other) { raise_memory(other, *least); },
         [&q, least](const Space&, const Candidate&) { return memory_needed(q, *least); }});
  if (!q.residency.empty())
    out.push_back({LimitKind::residency, kForbidden,
                   [](Question& other) { other.residency.clear(); },
                   [](const Space&, const Candidate&) { return Need{}; }});
  if (q.carbon_free)
    out.push_back(
        {LimitKind::carbon, kForbidden, [](Question& other) { other.carbon_free.reset(); },
         [&q](const Space& s, const Candidate& c) {
           const Region* region =
               find_region(q.base.regions, s.site(c).hardware.provider, s.offer(c).region);
           const auto share = region == nullptr ? std::nullopt : region->carbon_free;
           return Need{*q.carbon_free, share.value_or(kNoNumber), "", {}};
         }});
  return out;
}

/// How far the limit has to give way, less first; one without a number by the score alone. Of a
/// share that has to be reached less is further.
double distance(LimitKind kind, const Need& need) {
  if (std::isnan(need.needed)) return 0;
  return kind == LimitKind::carbon ? need.asked - need.needed
                                   : need.needed / std::max(need.asked, 1e-9);
}

std::optional<Relaxation> relaxed(const SearchSetting& s, const EarlyLimit& limit,
                                  int replications) {
  Question lifted = s.question;
  limit.lift(lifted);
  const Space space =
      make_space(lifted, s.catalog, s.network, {s.seed, replications, s.threads, 0});
  struct Way {
    bool misses;
    double distance;
    std::size_t rank;
    Need need;
  };
  std::vector<Way> ways;
  for (std::size_t k = 0; k < space.candidates.size(); ++k) {
    const Candidate& c = space.candidates[k];
    if (c.proven_late || c.proven_dear) continue;
    const bool misses = (lifted.deadline && c.time > lifted.deadline->value) ||
                        (lifted.budget && c.cost > lifted.budget->value);
    Need need = limit.need(space, c);
    // Of a region whose share is not published nobody can say that it is large enough.
    if (limit.kind == LimitKind::carbon && std::isnan(need.needed)) continue;
    const double far = distance(limit.kind, need);
    ways.push_back({misses, far, k, std::move(need)});
  }
  std::ranges::stable_sort(ways, [](const Way& a, const Way& b) {
    return std::tie(a.misses, a.distance, a.rank) < std::tie(b.misses, b.distance, b.rank);
  });
  if (ways.size() > kRelaxationsTried) ways.resize(kRelaxationsTried);
  Evaluator evaluator({lifted, s.catalog, s.network, space, s.seed, s.threads});
  std::vector<Candidate> tried;
  for (const Way& way : ways) tried.push_back(space.candidates[way.rank]);
  std::vector<Evaluated> forecasts = evaluator.evaluate(tried, replications);
  for (std::size_t k = 0; k < ways.size(); ++k)
    if (forecasts[k].meets_all() && std::isfinite(forecasts[k].score))
      return Relaxation{limit.kind,
                        ways[k].need.of,
                        ways[k].need.asked,
                        ways[k].need.needed,
                        ranked(space, std::move(forecasts[k])),
                        std::move(ways[k].need.also)};
  return std::nullopt;
}

}  // namespace

std::vector<Relaxation> early_relaxations(const SearchSetting& setting, const Answer& answer) {
  std::vector<Relaxation> out;
  for (const EarlyLimit& limit : limits_of(setting.question, setting.space)) {
    const auto left_out = answer.rejected.find(limit.reason);
    if (left_out == answer.rejected.end() || left_out->second == 0) continue;
    if (auto one = relaxed(setting, limit, answer.replications)) out.push_back(std::move(*one));
  }
  return out;
}

std::string closest_in_memory(const Space& space) {
  const Site* closest = nullptr;
  const auto lacks = [](const Site& s) { return s.closest->required() / s.closest->available; };
  for (const Site& site : space.sites)
    if (site.closest && (closest == nullptr || lacks(site) < lacks(*closest))) closest = &site;
  if (closest == nullptr) return "";
  const std::string on =
      closest->hardware.accelerator.empty() ? "a machine" : closest->hardware.accelerator;
  return fmt::format(
      "the closest needs {} of the {} of {}: P(out of memory) {}, where a plan may "
      "have {:.0f} %",
      format_bytes(closest->closest->required()), format_bytes(closest->closest->available), on,
      probability_text(closest->closest->out_of_memory()), 100 * kRiskOfAPlan);
}

}  // namespace reckon::planner
