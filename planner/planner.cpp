#include "planner/planner.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <tuple>

#include "planner/search/front.h"
#include "planner/search/infeasible.h"
#include "planner/search/rivals.h"
#include "sim/base/parallel.h"

namespace reckon::planner {
namespace {

constexpr std::size_t kFrontPoints = 12;
constexpr std::size_t kRivals = 10;
constexpr int kFrontDraws = 256;
constexpr double kStandardErrors = 1.96;  // 95 %
/// Looks around the best so far, and neighbours on each side.
constexpr int kSteps = 4;
constexpr std::size_t kAround = 2;

/// Limits that keep something of a lower score away: a forecast that misses only that limit, or a
/// candidate that is proven to.
std::vector<std::string> binding_limits(const Evaluated& best, const Space& space,
                                        const std::vector<Evaluated>& all) {
  bool deadline = false, budget = false;
  for (const Evaluated& e : all) {
    if (!e.refused.empty() || e.score >= best.score) continue;
    deadline = deadline || (!e.meets_deadline && e.meets_budget);
    budget = budget || (e.meets_deadline && !e.meets_budget);
  }
  for (const Candidate& c : space.candidates) {
    if (c.estimate >= best.candidate.estimate) continue;
    deadline = deadline || (c.proven_late && !c.proven_dear);
    budget = budget || (c.proven_dear && !c.proven_late);
  }
  std::vector<std::string> limits;
  if (deadline) limits.emplace_back("deadline");
  if (budget) limits.emplace_back("budget");
  return limits;
}

bool same_candidate(const Candidate& a, const Candidate& b) {
  return a.site == b.site && a.split == b.split && a.offer == b.offer;
}

/// The front's candidates that the race has not forecast.
std::vector<Candidate> not_yet_forecast(std::vector<Candidate> wanted,
                                        const std::vector<Evaluated>& done) {
  std::erase_if(wanted, [&](const Candidate& c) {
    return std::ranges::any_of(done,
                               [&](const Evaluated& e) { return same_candidate(e.candidate, c); });
  });
  return wanted;
}

/// The same machines bought alike as the best that meets all limits, the two next smaller and the
/// two next larger numbers of nodes that were not forecast, of each the most promising.
std::vector<Candidate> around_best(const Space& space, const std::vector<Evaluated>& finished) {
  const auto best = std::ranges::min_element(finished, is_better);
  if (best == finished.end() || !best->meets_all()) return {};
  const Candidate at = best->candidate;
  const auto alike = [&](const Candidate& c) { return c.site == at.site && c.offer == at.offer; };
  std::map<int, Candidate> by_nodes;
  for (const Candidate& c : space.candidates)
    if (alike(c) && !c.proven_late && !c.proven_dear && c.bound <= best->score)
      by_nodes.try_emplace(space.split(c).nodes, c);
  for (const Evaluated& e : finished)
    if (alike(e.candidate)) by_nodes.erase(space.split(e.candidate).nodes);
  std::vector<Candidate> around;
  auto above = by_nodes.upper_bound(space.split(at).nodes);
  for (auto below = above; below != by_nodes.begin() && around.size() < kAround;)
    around.push_back((--below)->second);
  for (std::size_t k = 0; k < kAround && above != by_nodes.end(); ++k, ++above)
    around.push_back(above->second);
  return around;
}

/// Ranks of rows whose order is certain; behind the last row stands the best that is in none.
std::size_t certain_rows(const Question& question, const std::vector<RankedPlan>& rows,
                         const std::vector<Evaluated>& finished) {
  std::vector<Evaluated> order;
  std::set<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>> in_rows;
  const auto key = [](const Evaluated& e) {
    return std::tuple(e.candidate.site, e.candidate.split, e.candidate.offer);
  };
  for (const RankedPlan& row : rows) {
    order.push_back(row.result);
    in_rows.insert(key(row.result));
    for (const RankedPlan& other : row.equals) in_rows.insert(key(other.result));
  }
  const auto next =
      std::ranges::find_if(finished, [&](const Evaluated& e) { return !in_rows.contains(key(e)); });
  if (next != finished.end()) order.push_back(*next);
  return ranks_certain(question, order, kStandardErrors);
}

void count_rejections(const Space& space, Answer& answer) {
  answer.rejected = space.rejected;
  const RaceResult& r = answer.search;
  const auto add = [&](const char* reason, std::int64_t count) {
    if (count > 0) answer.rejected[reason] += count;
  };
  add("misses the deadline (lower bound on time)", r.proven_late);
  add("over budget (lower bound on cost)", r.proven_dear);
  add("worse than the best (lower bound)", r.proven_worse);
  add("eliminated by successive halving", r.outrun);
  add("ranked by the step model only, not simulated", r.not_tried);
  for (const Evaluated& e : r.finished) {
    if (!e.refused.empty())
      add(e.refused.c_str(), 1);
    else if (!e.meets_deadline)
      add("misses the deadline", 1);
    else if (!e.meets_budget)
      add("misses the budget", 1);
    else if (!e.meets_emissions)
      add("over the limit on energy or CO2", 1);
  }
}

}  // namespace

Expected<Answer> plan(const Question& question, const Catalog& catalog, const NetworkModel& network,
                      const PlannerOptions& options) {
  const ForecastSpec& given = question.file.scenario.forecast;
  Answer answer;
  answer.scenario = question.file.scenario.name;
  answer.objective = question.objective;
  answer.deadline = question.deadline;
  answer.budget = question.budget;
  answer.seed = options.seed.value_or(given.seed);
  answer.replications_asked = options.replications.value_or(given.replications);
  answer.assumed = question.assumed;
  SearchedKeys keys = searched_keys(question);
  answer.searched = std::move(keys.searched);
  answer.held = std::move(keys.held);
  answer.batch_rule = question.batch_rule;
  answer.file = question.base.is_file ? question.base.name : "";
  answer.words = question.base.words;

  const bool insists = options.replications || says_replications(question);
  const Space space = make_space(
      question, catalog, network,
      {answer.seed, answer.replications_asked, options.threads, insists ? 0 : options.effort});
  answer.replications = space.replications;
  const bool nothing =
      std::ranges::all_of(space.sites, [](const Site& site) { return !site.refused.empty(); });
  if (!space.sites.empty() && nothing) return tl::unexpected(space.sites.front().refused);
  answer.considered = space.considered;
  answer.feasible = std::int64_t(space.candidates.size());

  Evaluator evaluator({question, catalog, network, space, answer.seed, options.threads});
  RaceOptions how;
  how.exact_up_to = options.exact_up_to;
  how.prune = options.prune;
  how.progress = options.progress;
  answer.search = race(space, evaluator, how);
  std::vector<Evaluated>& finished = answer.search.finished;
  count_rejections(space, answer);

  Outlook outlook({question, catalog, network, space, answer.seed, options.threads},
                  std::min(kFrontDraws, answer.replications));
  const bool any = !finished.empty() && finished.front().meets_all();
  const Candidate* best = any ? &finished.front().candidate : nullptr;
  const auto missing =
      not_yet_forecast(estimated_front(space, outlook, kFrontPoints, best), finished);
  for (Evaluated& e : evaluator.evaluate(missing, answer.replications))
    finished.push_back(std::move(e));
  for (int step = 0; step < kSteps && !answer.search.exact; ++step)
    for (Evaluated& e : evaluator.evaluate(around_best(space, finished), answer.replications))
      finished.push_back(std::move(e));
  for (Evaluated& e : evaluator.evaluate(wanted_for_best_by(space, finished), answer.replications))
    finished.push_back(std::move(e));
  std::ranges::sort(finished, is_better);

  answer.plans = rows_of(space, finished, options.keep);
  std::vector<RankedPlan> front;
  for (Evaluated& e : pareto_front(finished)) front.push_back(ranked(space, std::move(e)));
  for (RankedPlan& p : answer.plans) {
    p.binding = binding_limits(p.result, space, finished);
    p.in_front = std::ranges::any_of(front, [&](const RankedPlan& f) {
      return same_candidate(f.result.candidate, p.result.candidate);
    });
  }
  answer.front = without_absurd_ends(
      std::move(front), answer.plans.empty() ? nullptr : &answer.plans.front().result.candidate);
  answer.best_by = best_by(space, question.objective, finished, answer.plans);
  answer.rivals = rivals_of(space, finished, kRivals);
  answer.certain_ranks = certain_rows(question, answer.plans, finished);
  if (!answer.plans.empty())
    answer.lever_rivals = lever_rivals(question, space, answer.plans.front());
  else
    answer.infeasible = why_none({question, catalog, network, space, answer.seed, options.threads},
                                 evaluator, answer, finished);
  answer.lives = evaluator.lives();
  return answer;
}

void explain_choice(const Question& question, const Catalog& catalog, const NetworkModel& network,
                    const PlannerOptions& options, Answer& answer) {
  if (answer.plans.empty()) return;
  const RankedPlan& chosen = answer.plans.front();
  SensitivityOptions how;
  how.threads = options.threads;
  parallel_for(2, options.threads, [&](std::size_t k) {
    if (k == 0)
      answer.sensitivity = sensitivity(question, catalog, network, chosen,
                                       {answer.rivals, answer.lever_rivals}, how);
    else
      answer.measurements = worth_measuring(question, catalog, network, chosen, answer.rivals);
  });
}

}  // namespace reckon::planner
