#include "planner/search/infeasible.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "planner/search/relaxations.h"
#include "planner/search/rivals.h"
#include "sim/base/unit_text.h"

namespace reckon::planner {
namespace {

constexpr std::size_t kLimitsTried = 6;

/// The first few by `key`, of those that `keep` allows.
std::vector<Candidate> first_by(const Space& space, double Candidate::*key,
                                const std::function<bool(const Candidate&)>& keep) {
  std::vector<Candidate> out;
  for (const Candidate& c : space.candidates)
    if (keep(c)) out.push_back(c);
  std::ranges::stable_sort(out, {}, key);
  if (out.size() > kLimitsTried) out.resize(kLimitsTried);
  return out;
}

std::string most_frequent(const Rejections& rejected) {
  std::string reason = "the catalog has no machine that the question allows";
  std::int64_t most = 0;
  for (const auto& [why, count] : rejected)
    if (count > most) {
      most = count;
      reason = why;
    }
  return reason;
}

void note(std::vector<Relaxation>& out, LimitKind limit, double asked, double needed,
          const Space& space, const Evaluated& e) {
  if (!std::isfinite(needed)) return;
  RankedPlan p = ranked(space, e);
  const auto same = std::ranges::find(out, limit, &Relaxation::limit);
  if (same == out.end())
    out.push_back({limit, "", asked, needed, std::move(p), {}});
  else if (needed < same->needed)
    *same = {limit, "", asked, needed, std::move(p), {}};
}

/// Deadline and budget, of which one alone would have to give way.
std::vector<Relaxation> late_relaxations(const SearchSetting& s, Evaluator& evaluator,
                                         int replications, std::vector<Evaluated> finished) {
  const auto& deadline = s.question.deadline;
  const auto& budget = s.question.budget;
  std::vector<Candidate> more;
  const auto add = [&](const std::vector<Candidate>& some) {
    more.insert(more.end(), some.begin(), some.end());
  };
  add(first_by(s.space, &Candidate::time,
               [&](const Candidate& c) { return !budget || c.cost <= budget->value; }));
  add(first_by(s.space, &Candidate::cost,
               [&](const Candidate& c) { return !deadline || c.time <= deadline->value; }));
  for (Evaluated& e : evaluator.evaluate(more, replications)) finished.push_back(std::move(e));
  std::vector<Relaxation> out;
  for (const Evaluated& e : finished) {
    if (!e.refused.empty() || !e.meets_emissions) continue;
    if (deadline && e.meets_budget && !e.meets_deadline)
      note(out, LimitKind::deadline, deadline->value, e.late, s.space, e);
    if (budget && e.meets_deadline && !e.meets_budget)
      note(out, LimitKind::budget, budget->value, e.dear, s.space, e);
  }
  std::ranges::sort(out, {}, [](const Relaxation& r) { return r.needed / r.asked; });
  return out;
}

std::string quotas_too_small(const Relaxation& r) {
  std::string text = fmt::format("the quota of {:.0f} for {}", r.asked, r.of);
  for (const Shortfall& other : r.also)
    text += fmt::format(", {}that of {:.0f} for {}", &other == &r.also.back() ? "and " : "",
                        other.asked, other.of);
  if (r.also.size() == 1) text.replace(text.find(", and that"), 5, " and");
  return text + (r.also.empty() ? " is too small" : " are too small");
}

std::string binding_limit(const Question& q, const Relaxation& r) {
  switch (r.limit) {
    case LimitKind::deadline:
      return fmt::format("the deadline of {} is not met", q.deadline->text);
    case LimitKind::budget:
      return fmt::format("the budget of {} is not met", q.budget->text);
    case LimitKind::quota:
      return quotas_too_small(r);
    case LimitKind::nodes:
      return fmt::format("no more than {:.0f} nodes may be taken, and no plan is of so few",
                         r.asked);
    case LimitKind::memory:
      return "no plan needs as little memory as is allowed";
    case LimitKind::residency:
      return fmt::format("no region in {} has a plan", fmt::join(q.residency, ", "));
    case LimitKind::carbon:
      return fmt::format("no region with {:.3g} % of its power free of carbon has a plan",
                         100 * r.asked);
  }
  return "";
}

std::string emissions_reason(const Question& q) {
  std::vector<std::string> limits;
  if (q.energy_joules) limits.push_back(format_energy(*q.energy_joules));
  if (q.co2_grams) limits.push_back(format_mass(*q.co2_grams) + " of CO2");
  return fmt::format("no plan that was forecast needs at most {}, with the other limits kept",
                     fmt::join(limits, " and "));
}

/// How near the space comes to a deadline and a budget, at the medians.
std::string nearest_to_limits(const Space& space) {
  const auto least = [&](double Candidate::*of) {
    return std::ranges::min(space.candidates, {}, of).*of;
  };
  const double time = least(&Candidate::time), cost = least(&Candidate::cost);
  if (!std::isfinite(time) || !std::isfinite(cost)) return "";
  return fmt::format("; the fastest takes about {}, the cheapest costs about {}",
                     format_duration(Seconds{time}), format_usd(Usd{cost}));
}

/// Nothing that is forecast would do, whichever limit gave way.
std::string reason_without(const Question& q, const Space& space, const Answer& answer) {
  if (!space.candidates.empty() && (q.energy_joules || q.co2_grams)) return emissions_reason(q);
  if (!space.candidates.empty() && q.deadline && q.budget)
    return fmt::format("neither the deadline of {} nor the budget of {} is met by any plan{}",
                       q.deadline->text, q.budget->text, nearest_to_limits(space));
  if (!space.candidates.empty())
    return "every plan that was forecast never ends or cannot be priced";
  const std::string reason = most_frequent(answer.rejected);
  const std::string closest = reason == kTooLittleMemory ? closest_in_memory(space) : "";
  return closest.empty() ? reason : "it " + reason + ": " + closest;
}

}  // namespace

std::string_view to_text(LimitKind kind) {
  switch (kind) {
    case LimitKind::deadline:
      return "deadline";
    case LimitKind::budget:
      return "budget";
    case LimitKind::quota:
      return "quota";
    case LimitKind::nodes:
      return "max_nodes";
    case LimitKind::memory:
      return "memory";
    case LimitKind::residency:
      return "residency";
    case LimitKind::carbon:
      return "carbon_free";
  }
  return "";
}

Infeasible why_none(const SearchSetting& setting, Evaluator& evaluator, const Answer& answer,
                    std::vector<Evaluated> finished) {
  Infeasible none;
  if (!setting.space.candidates.empty())
    none.relaxations =
        late_relaxations(setting, evaluator, answer.replications, std::move(finished));
  for (Relaxation& early : early_relaxations(setting, answer))
    none.relaxations.push_back(std::move(early));
  none.reason = none.relaxations.empty()
                    ? reason_without(setting.question, setting.space, answer)
                    : binding_limit(setting.question, none.relaxations.front());
  return none;
}

}  // namespace reckon::planner
