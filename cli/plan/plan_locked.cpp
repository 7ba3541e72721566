#include "cli/plan/plan_locked.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <limits>

#include "cli/check/locked.h"
#include "cli/output.h"
#include "cli/plan/lock.h"
#include "cli/plan/plan_question.h"
#include "planner/plan_file.h"
#include "sim/scenario/yaml/scenario_yaml.h"

namespace reckon::cli {
namespace {

constexpr double kNoPlan = std::numeric_limits<double>::infinity();

/// Means of the best plan; infinite: none fits, or its price is unknown.
struct BestFigures {
  double score = kNoPlan, time = kNoPlan, cost = kNoPlan;
};
BestFigures figures_of(const planner::Answer& answer) {
  if (answer.plans.empty()) return {};
  const planner::Evaluated& best = answer.plans.front().result;
  return {best.score, best.forecast.time_seconds.mean,
          best.forecast.cost_usd ? best.forecast.cost_usd->mean : kNoPlan};
}

/// Of a question that is none with these catalogs: no plan.
BestFigures searched(planner::Base base, const LoadedCatalog& catalog, const LockedQuestion& of,
                     planner::PlannerOptions how) {
  const auto profile = profile_of(base, catalog);
  if (!profile) return {};
  base.evidence = *profile ? profile->get() : catalog.evidence();
  const auto question = planner::make_question(std::move(base), catalog);
  if (!question) return {};
  ProgressLine line;
  if (const auto show = line.text_callback())
    how.progress = [show](const planner::SearchProgress& p) {
      show(fmt::format("as of the lock: {} candidates, {} in the final rounds", p.considered,
                       p.racing));
    };
  const auto answer = planner::plan(*question, catalog, of.network, how);
  return answer ? figures_of(*answer) : BestFigures{};
}

planner::LockedSampling sampling_of_question(const planner::PlannerOptions& how) {
  return {how.seed, how.replications};
}

std::set<std::string> providers_of_plan(const planner::Question& question, const Plan& best) {
  std::set<std::string> of{best.provider.name, question.file.scenario.cluster.provider.name};
  for (const Provider& provider : question.may.providers) of.insert(provider.name);
  return of;
}

std::string text_of_lock(const planner::Base& base) {
  constexpr std::array<std::string_view, 1> kInIt{"extends"};
  return flat_scenario(base.text, base.name, base.overrides, base.layers, kInIt).value();  // read
}

/// The scenario's forecast; nullopt: alone it is no plan, as where `machine: any` stands.
std::optional<planner::LockedForecast> forecast_alone(const LockedQuestion& of) {
  auto file = planner::read(of.question.base);
  if (!file) return std::nullopt;
  const auto loaded = load_all(std::move(*file), of.catalog);
  if (!loaded) return std::nullopt;
  return locked_forecast(check_answer(*loaded, of.options, of.network), of.options);
}

}  // namespace

Expected<void> write_plan_lock(const LockedQuestion& of, const planner::Answer& answer,
                               const Plan& best) {
  const std::string& file = of.question.base.name;
  const planner::RankedPlan& first = answer.plans.front();
  auto text = planner::plan_file(of.question, first, best, RECKON_VERSION,
                                 std::filesystem::path(file).parent_path());
  if (!text) return tl::unexpected(std::move(text.error()));
  LockSubject subject{.file = file,
                      .text = text_of_lock(of.question.base),
                      .providers = providers_of_plan(of.question, best),
                      .used = {}};
  if (best.evidence)
    for (const ComparableRun& run : best.evidence->runs) subject.used.push_back(run.id);
  planner::Lock lock = lock_of(subject, of.options, of.catalog);
  lock.forecast = forecast_alone(of);
  const Forecast& forecast = first.result.forecast;
  lock.plan = planner::LockedPlan{.sampling = sampling_of_question(of.how),
                                  .objective = std::string(to_text(answer.objective)),
                                  .score = first.result.score,
                                  .file = std::move(*text),
                                  .time_seconds = forecast.time_seconds,
                                  .cost_usd = forecast.cost_usd};
  write_lock_beside(file, lock);
  return {};
}

Expected<AttributedScore> attribute_score(const LockedQuestion& of, const planner::Lock& lock,
                                          const planner::Answer& answer) {
  LockedCatalogs catalogs(lock, of.options, of.catalog);
  InputChanges changes = catalogs.changes();
  const planner::Base& base = of.question.base;
  changes.edited = text_of_lock(base) != lock.scenario.text ||
                   sampling_of_question(of.how) != lock.plan->sampling;
  const auto files = changed_files(lock, base.name, text_of_lock(base));
  const BestFigures now = figures_of(answer);
  BestFigures again = now, edited = now, repriced = now;
  if (changes.any()) {
    const auto old = catalogs.then();
    if (!old) return tl::unexpected(old.error());
    planner::PlannerOptions how = of.how, as_then = of.how;
    how.keep = as_then.keep = 1;
    as_then.seed = lock.plan->sampling.seed;
    as_then.replications = lock.plan->sampling.replications;
    planner::Base base_then = base;
    base_then.text = lock.scenario.text;
    base_then.overrides.clear();
    base_then.layers.clear();
    if (auto read = read_regions(of.options, base_then); !read)
      return tl::unexpected(std::move(read.error()));
    again = searched(std::move(base_then), **old, of, as_then);
    if (changes.repriced || changes.evidence) {
      edited = changes.edited ? searched(base, **old, of, how) : again;
      const auto evidence = catalogs.evidence_of_then();
      if (!evidence) return tl::unexpected(evidence.error());
      if (changes.evidence)
        repriced = changes.repriced ? searched(base, **evidence, of, how) : edited;
    }
  }
  const bool rest_is_edit = !files.empty() && catalogs.same_reckon();
  const auto swaps = [&](double then, double BestFigures::*of_figure) {
    planner::Swaps s{then, again.*of_figure, edited.*of_figure, repriced.*of_figure,
                     now.*of_figure};
    if (rest_is_edit) s.again = s.then;
    return s;
  };
  AttributedScore out;
  out.score = swaps(lock.plan->score, &BestFigures::score);
  out.since.lock = of.options.baseline;
  out.since.figures = {
      {"mean time", FigureChange::Unit::time,
       swaps(lock.plan->time_seconds.mean, &BestFigures::time)},
      {"mean cost", FigureChange::Unit::money,
       swaps(lock.plan->cost_usd ? lock.plan->cost_usd->mean : kNoPlan, &BestFigures::cost)}};
  out.since.notes = catalogs.notes();
  for (const std::string& name : files)
    out.since.notes.push_back(
        fmt::format("{} has changed: counted as {}", name,
                    rest_is_edit ? "your edit" : "reckon's share, as reckon has changed too"));
  out.since.same = !changes.any() && files.empty() && out.score.then == out.score.now;
  return out;
}

}  // namespace reckon::cli
