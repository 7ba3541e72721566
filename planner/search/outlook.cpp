#include "planner/search/outlook.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <tuple>

#include "sim/base/parallel.h"
#include "sim/forecast/replicate.h"

namespace reckon::planner {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

}  // namespace

Outlook::DrawnSite Outlook::draw(const Candidate& first) const {
  DrawnSite drawn;
  const auto plan = plan_of(s_.question, s_.catalog, s_.space, first);
  if (!plan) return drawn;
  const ForecastSetup setup = make_setup(*plan, s_.network);
  const Site& site = s_.space.site(first);
  const auto reclaim = std::ranges::find(site.assumptions, "reclaim.mean", &PlanAssumption::key);
  const bool known = reclaim != site.assumptions.end() && reclaim->value > 0;
  for (int k = 0; k < draws_; ++k) {
    const auto replication = std::uint32_t(k);
    drawn.step.push_back(step_factor(setup, s_.seed, replication));
    drawn.reclaim.push_back(known ? value_at(*reclaim, draw_score(*reclaim, s_.seed, replication)) /
                                        reclaim->value
                                  : 1.0);
  }
  return drawn;
}

const Outlook::DrawnSite& Outlook::site_of(const Candidate& c) {
  const auto found = sites_.find(c.site);
  return found != sites_.end() ? found->second : sites_[c.site] = draw(c);
}

Promise Outlook::of(const Candidate& c) {
  const DrawnSite& drawn = site_of(c);
  Promise promise{true, kNever, kNever, kNever};
  const Split& split = s_.space.split(c);
  const Outside& outside = s_.space.site(c).outside[std::size_t(split.nodes)];
  const bool spot = s_.space.offer(c).pricing == CapacityType::spot;
  const double work = double(split.steps) * split.step_seconds;
  const Site& site = s_.space.site(c);
  const Offer& offer = s_.space.offer(c);
  const Interruptions usual = interruptions_of(outside, offer, split.nodes);
  const double wait = wait_for_spot(site, offer, split.nodes);
  const double reclaims = spot ? 1 / usual.every - 1 / outside.on_demand.every : 0;
  const double longest = LifeOptions{}.horizon.count();
  std::vector<double> times, costs;
  for (std::size_t k = 0; k < drawn.step.size(); ++k) {
    Interruptions now = usual;
    now.restart += wait;
    const double often = 1 / outside.on_demand.every + reclaims / drawn.reclaim[k];
    now.every = often > 0 ? 1 / often : kNever;
    const double drawn_work = work * drawn.step[k];
    const double time = outside.start_seconds + wait + drawn_work * stretch_of(now, drawn_work);
    if (!(time <= longest)) return promise;
    times.push_back(time);
    costs.push_back(c.cost / c.time * time);
  }
  if (times.empty()) return promise;
  const Question& q = s_.question;
  promise.misses = (q.deadline && held_against(*q.deadline, times) > q.deadline->value) ||
                   (q.budget && held_against(*q.budget, costs) > q.budget->value);
  promise.time = mean_of(times);
  promise.cost = mean_of(costs);
  const bool p95 = is_of_p95(q.objective);
  promise.score = score_of(q.objective, p95 ? quantile(times, 0.95) : promise.time,
                           p95 ? quantile(costs, 0.95) : promise.cost);
  return promise;
}

void Outlook::reorder(std::vector<Candidate>& candidates, std::size_t most) {
  std::map<std::tuple<CapacityType, double, CapacityType, std::string>, std::size_t> taken;
  const auto rest =
      std::stable_partition(candidates.begin(), candidates.end(), [&](const Candidate& c) {
        const Offer& o = s_.space.offer(c);
        return taken[{o.pricing, o.mix.share, o.mix.base, o.mix.patience_text}]++ < most;
      });
  std::vector<Candidate> firsts;
  for (auto c = candidates.begin(); c != rest; ++c)
    if (sites_.try_emplace(c->site).second) firsts.push_back(*c);
  std::vector<DrawnSite> drawn(firsts.size());
  parallel_for(firsts.size(), s_.threads, [&](std::size_t k) { drawn[k] = draw(firsts[k]); });
  for (std::size_t k = 0; k < firsts.size(); ++k) sites_[firsts[k].site] = std::move(drawn[k]);

  std::vector<std::pair<Promise, Candidate>> looked;
  for (auto c = candidates.begin(); c != rest; ++c) looked.emplace_back(of(*c), *c);
  std::ranges::stable_sort(looked, [](const auto& a, const auto& b) {
    return std::tie(a.first.misses, a.first.score) < std::tie(b.first.misses, b.first.score);
  });
  for (std::size_t k = 0; k < looked.size(); ++k) candidates[k] = looked[k].second;
}

}  // namespace reckon::planner
