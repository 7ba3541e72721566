#include "planner/fleet/fleet.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "planner/fleet/make.h"
#include "planner/fleet/mix.h"
#include "sim/base/unit_text.h"
#include "sim/scenario/resolve/pricing.h"

namespace reckon::planner {
namespace {

/// A limit binds where the objective without it is better by more than the solver's tolerance.
constexpr double kBetter = 1e-4;

struct Named {
  const char* name;
  bool MixQuestion::*holds;
};
constexpr std::array kLimits{
    Named{"quota", &MixQuestion::quota}, Named{"deadlines", &MixQuestion::deadlines},
    Named{"budget", &MixQuestion::budget}, Named{"period", &MixQuestion::period}};

/// Limits without which the choice would be better.
void find_binding(FleetAnswer& answer, double objective) {
  for (const Named& limit : kLimits) {
    MixQuestion without;
    without.*limit.holds = false;
    const MixAnswer other = solve_pool_mix(answer.fleet, without);
    if (other.choice.runs.empty() || other.status != MipSolution::Status::optimal) continue;
    if (other.objective < objective - kBetter * std::abs(objective))
      answer.limits.push_back({limit.name, other.objective, std::nullopt, ""});
  }
}

/// Of a question that nothing answers: each limit that by itself would have to give way, and how
/// far.
void find_relaxations(FleetAnswer& answer) {
  struct Stretched {
    const char* name;
    MixQuestion::Least least;
    const char* unit;
  };
  const std::array stretched{Stretched{"quota", MixQuestion::Least::quota, "accelerators more"},
                             Stretched{"deadlines", MixQuestion::Least::lateness, "s later"},
                             Stretched{"budget", MixQuestion::Least::cost, "USD"}};
  for (const Stretched& s : stretched) {
    MixQuestion question;
    question.least = s.least;
    const MixAnswer other = solve_pool_mix(answer.fleet, question);
    if (!other.choice.runs.empty())
      answer.limits.push_back({s.name, std::nullopt, other.objective, s.unit});
  }
  MixQuestion longer;
  longer.period = false;
  if (answer.limits.empty() && !solve_pool_mix(answer.fleet, longer).choice.runs.empty())
    answer.limits.push_back({"period", std::nullopt, std::nullopt, ""});
}

Expected<std::optional<Limit>> budget_of(const ScenarioFile& file) {
  const std::string& text = file.scenario.plan->budget;
  if (text.empty()) return std::nullopt;
  const std::size_t at = text.find('@');
  const auto usd = planning::to_usd_rate(*parse_money(text.substr(0, at)), file.scenario.prices);
  if (!usd)
    return tl::unexpected(Diagnostics{{Severity::error, file.places.find("plan.budget"),
                                       usd.error(), "prices: {currency: EUR, usd_rate: 0.92}"}});
  Limit limit{usd->v, std::nullopt, text};
  if (at != std::string::npos) limit.probability = *parse_fraction(text.substr(at + 1));
  return limit;
}

/// What the replay says of jobs that came too late, and of the budget, for the program to know. The
/// worst that was met stays: else two choices that both miss could take turns.
void learn(const FleetChoice& choice, const Replay& replay, Fleet& fleet) {
  for (std::size_t j = 0; j < replay.jobs.size(); ++j) {
    if (replay.jobs[j].meets) continue;
    const FleetChoice::Run& run = choice.runs[j];
    double& worst = fleet.replayed_held_to[{j, run.option}];
    worst = std::max(worst, replay.jobs[j].held_to - (run.start - fleet.jobs[j].submit));
  }
  // A choice costs so many times more in the replay than in the program.
  if (!replay.meets_budget && replay.budget_held_to > 0)
    fleet.program_budget = std::min(fleet.program_budget.value_or(fleet.budget->value),
                                    fleet.budget->value * (choice.usd / replay.budget_held_to));
}

/// The program's choice and its replay. A choice whose replay misses a limit is taken back and the
/// program solved with that knowledge; where none holds the first stands, and says what it misses.
Expected<void> choose(const FleetSetting& setting, MixAnswer mix, FleetAnswer& answer) {
  constexpr int kAgain = 5;
  const Fleet asked = answer.fleet;
  std::optional<std::pair<MixAnswer, Replay>> first;
  while (true) {
    auto replayed = replay(setting, answer, mix.choice, answer.replications);
    if (!replayed) return tl::unexpected(std::move(replayed.error()));
    const bool holds = replayed->meets_all();
    if (holds || answer.solved_again == kAgain) {
      if (holds || !first) first.emplace(std::move(mix), std::move(*replayed));
      if (!holds) answer.fleet = asked;
      break;
    }
    learn(mix.choice, *replayed, answer.fleet);
    if (!first) first.emplace(std::move(mix), std::move(*replayed));
    ++answer.solved_again;
    mix = solve_pool_mix(answer.fleet);
    if (!mix.choice.runs.empty()) continue;
    answer.fleet = asked;
    break;
  }
  answer.choice = first->first.choice;
  answer.proven = first->first.status == MipSolution::Status::optimal;
  answer.bound = first->first.bound;
  answer.replay = std::move(first->second);
  find_binding(answer, first->first.objective);
  return {};
}

}  // namespace

bool Replay::meets_all() const {
  return meets_budget && std::ranges::all_of(jobs, &ReplayedJob::meets);
}

Expected<FleetAnswer> plan_fleet(const Base& base, const Catalog& catalog,
                                 const NetworkModel& network, const FleetOptions& options) {
  auto file = read(base);
  if (!file) return tl::unexpected(std::move(file.error()));
  Diagnostics problems = check_fleet(*file, catalog);
  if (const std::string none = why_no_solver(); !none.empty())
    problems.push_back({Severity::error, file->places.find("jobs"), none,
                        "a plan for several jobs needs it; each job can be planned by itself"});
  if (!problems.empty()) return tl::unexpected(std::move(problems));
  const Scenario& scenario = file->scenario;
  FleetAnswer answer;
  answer.scenario = scenario.name;
  answer.objective =
      scenario.plan->objective == Objective::time ? Objective::time : Objective::cost;
  answer.seed = options.seed.value_or(scenario.forecast.seed);
  answer.replications = options.replications.value_or(scenario.forecast.replications);
  auto budget = budget_of(*file);
  if (!budget) return tl::unexpected(std::move(budget.error()));
  answer.fleet.budget = *budget;
  const FleetSetting setting{base, *file, catalog, network, answer.seed, options.threads};
  if (auto made = make_fleet(setting, answer); !made) return tl::unexpected(made.error());
  if (!answer.without_plan.empty()) return answer;

  const MixAnswer mix = solve_pool_mix(answer.fleet);
  answer.columns = mix.columns;
  answer.rows = mix.rows;
  if (mix.choice.runs.empty()) {
    answer.proven = mix.status == MipSolution::Status::optimal;
    answer.bound = mix.bound;
    find_relaxations(answer);
    return answer;
  }
  if (auto chosen = choose(setting, mix, answer); !chosen) return tl::unexpected(chosen.error());
  return answer;
}

}  // namespace reckon::planner
