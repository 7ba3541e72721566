#include "planner/infeasible.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "sim/base/unit_text.h"

namespace reckon::planner {
namespace {

constexpr std::size_t kTried = 6;

/// The first few by `key`, of those that `keep` allows.
std::vector<Candidate> first_by(const Space& space, double Candidate::*key,
                                const std::function<bool(const Candidate&)>& keep) {
  std::vector<Candidate> out;
  for (const Candidate& c : space.candidates)
    if (keep(c)) out.push_back(c);
  std::ranges::stable_sort(out, {}, key);
  if (out.size() > kTried) out.resize(kTried);
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

void note(std::vector<Relaxation>& out, const char* limit, double asked, double needed,
          const Space& space, const Evaluated& e) {
  if (!std::isfinite(needed)) return;
  RankedPlan p = ranked(space, e);
  const auto same = std::ranges::find(out, limit, &Relaxation::limit);
  if (same == out.end())
    out.push_back({limit, asked, needed, std::move(p)});
  else if (needed < same->needed)
    *same = {limit, asked, needed, std::move(p)};
}

}  // namespace

Infeasible why_none(const Question& question, const Space& space, Evaluator& evaluator,
                    const Answer& answer, std::vector<Evaluated> finished) {
  Infeasible none;
  if (space.candidates.empty()) {
    none.reason = most_frequent(answer.rejected);
    return none;
  }
  const auto& deadline = question.deadline;
  const auto& budget = question.budget;
  std::vector<Candidate> more;
  const auto add = [&](const std::vector<Candidate>& some) {
    more.insert(more.end(), some.begin(), some.end());
  };
  add(first_by(space, &Candidate::time,
               [&](const Candidate& c) { return !budget || c.cost <= budget->value; }));
  add(first_by(space, &Candidate::cost,
               [&](const Candidate& c) { return !deadline || c.time <= deadline->value; }));
  for (Evaluated& e : evaluator.evaluate(more, answer.replications))
    finished.push_back(std::move(e));
  for (const Evaluated& e : finished) {
    if (!e.refused.empty()) continue;
    if (deadline && e.meets_budget && !e.meets_deadline)
      note(none.relaxations, "deadline", deadline->value, e.late, space, e);
    if (budget && e.meets_deadline && !e.meets_budget)
      note(none.relaxations, "budget", budget->value, e.dear, space, e);
  }
  std::ranges::sort(none.relaxations, {}, [](const Relaxation& r) { return r.needed / r.asked; });
  if (deadline && budget && none.relaxations.empty())
    none.reason = fmt::format("neither the deadline of {} nor the budget of {} is met by any plan",
                              deadline->text, budget->text);
  else if (!none.relaxations.empty())
    none.reason =
        fmt::format("the {} of {} is not met", none.relaxations.front().limit,
                    none.relaxations.front().limit == "deadline" ? deadline->text : budget->text);
  else
    none.reason = "every plan that was forecast never ends or cannot be priced";
  return none;
}

}  // namespace reckon::planner
