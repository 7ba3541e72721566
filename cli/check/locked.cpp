#include "cli/check/locked.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "cli/output.h"
#include "cli/plan/lock.h"
#include "report/queue/queue.h"
#include "sim/forecast/forecast.h"
#include "sim/serving/serving.h"

namespace reckon::cli {
namespace {

constexpr double kNoAnswer = std::numeric_limits<double>::infinity();

double median(const std::optional<Quantiles>& q) { return q ? q->p50 : kNoAnswer; }

/// The value of the expectation of that text; infinite: it has none.
double value_of(const std::vector<CheckedExpectation>& all, const std::string& text) {
  const auto found = std::ranges::find(all, text, [](const auto& e) { return e.result.text; });
  return found == all.end() ? kNoAnswer : found->result.value.value_or(kNoAnswer);
}

/// The same scenario at each swap. `again` to `now` are today's reckon.
struct Answers {
  CheckedAnswer again, edited, repriced;
};

planner::LockedSampling check_locked(const Sampling& s) { return {s.seed, s.replications}; }

Sampling sampling_of(const planner::LockedSampling& locked, const Sampling& today) {
  Sampling then = today;
  then.seed = locked.seed;
  then.replications = locked.replications;
  return then;
}

/// Of a scenario that is none with these catalogs: no answer at all.
CheckedAnswer answer_or_none(Expected<ScenarioFile> scenario, const LoadedCatalog& catalog,
                             const Sampling& sampling, const NetworkModel& network) {
  if (!scenario) return {};
  const auto loaded = load_all(std::move(*scenario), catalog);
  return loaded ? check_answer(*loaded, sampling, network) : CheckedAnswer{};
}

std::set<std::string> providers_of_lock(const LoadedScenario& loaded) {
  std::set<std::string> providers;
  if (loaded.plan) providers.insert(loaded.plan->provider.name);
  if (loaded.serving) providers.insert(loaded.serving->cluster.provider.name);
  return providers;
}

}  // namespace

CheckedAnswer check_answer(const LoadedScenario& loaded, const Sampling& sampling,
                           const NetworkModel& network) {
  CheckedAnswer answer;
  const auto expected_at = [&](std::size_t k) {
    return loaded.file.places.find(fmt::format("expect.{}", k));
  };
  if (loaded.trace) {
    const TraceResult result = answer_trace(*loaded.trace, sampling);
    const auto& expect = loaded.file.scenario.expect;
    for (std::size_t k = 0; k < expect.size(); ++k)
      answer.expectations.push_back(
          {expect[k], evaluate(expect[k], result), expected_at(k), std::nullopt});
    return answer;
  }
  ProgressLine progress;
  ForecastOptions how = forecast_options(sampling);
  how.progress = progress.callback();
  std::optional<Forecast> forecast;
  if (loaded.plan) forecast = make_forecast(*loaded.plan, network, how);
  const std::optional<ServingForecast> serving = forecast_service(loaded, forecast, sampling);
  // A plan's have their dates resolved.
  const auto& expect = loaded.plan ? loaded.plan->expect : loaded.file.scenario.expect;
  for (std::size_t k = 0; k < expect.size(); ++k) {
    const bool of_serving = serving && (is_of_serving(expect[k].metric) || !forecast);
    answer.expectations.push_back(
        {expect[k], of_serving ? evaluate(expect[k], *serving) : evaluate(expect[k], *forecast),
         expected_at(k), std::nullopt});
  }
  if (forecast && forecast->feasible) {
    if (std::isfinite(forecast->time_seconds.p50)) answer.time_seconds = forecast->time_seconds;
    answer.cost_usd = forecast->cost_usd;
  }
  return answer;
}

planner::LockedForecast locked_forecast(const CheckedAnswer& answer, const Sampling& sampling) {
  planner::LockedForecast forecast{
      check_locked(sampling), answer.time_seconds, answer.cost_usd, {}};
  for (const CheckedExpectation& e : answer.expectations)
    forecast.expect.push_back({e.result.text, e.result.value, e.result.passed});
  return forecast;
}

Expected<void> attribute_changes(const planner::Lock& lock, const CheckSetting& setting,
                                 const CheckedAnswer& today, CheckedScenario& checked) {
  if (!lock.forecast) return {};  // of a search alone
  const std::string& file = checked.file;
  auto text = locked_text(file, setting.changes);
  if (!text) return tl::unexpected(std::move(text.error()));
  LockedCatalogs catalogs(lock, setting.choice, setting.catalog);
  InputChanges changes = catalogs.changes();
  const auto files = changed_files(lock, file, *text);
  const Sampling then = sampling_of(lock.forecast->sampling, setting.sampling);
  changes.edited =
      *text != lock.scenario.text || check_locked(setting.sampling) != lock.forecast->sampling;

  Answers at{today, today, today};
  const auto of_today = [&](const LoadedCatalog& catalog) {
    const auto again = load_all(file, setting.changes, catalog);
    return again ? check_answer(*again, setting.sampling, setting.network) : CheckedAnswer{};
  };
  if (changes.any()) {
    const auto old = catalogs.then();
    if (!old) return tl::unexpected(old.error());
    at.again = answer_or_none(load_scenario_text(lock.scenario.text, file, {}), **old, then,
                              setting.network);
    if (changes.repriced || changes.evidence) {
      at.edited = changes.edited ? of_today(**old) : at.again;
      const auto evidence = catalogs.evidence_of_then();
      if (!evidence) return tl::unexpected(evidence.error());
      if (changes.evidence) at.repriced = changes.repriced ? of_today(**evidence) : at.edited;
    }
  }
  // A file that the scenario names is the author's edit, and the lock does not hold what it said.
  const bool rest_is_edit = !files.empty() && catalogs.same_reckon();
  const auto swaps = [&](double before, auto&& of) {
    planner::Swaps s{before, of(at.again), of(at.edited), of(at.repriced), of(today)};
    if (rest_is_edit) s.again = s.then;
    return s;
  };

  LockChange since;
  since.lock = lock_beside(file).string();
  const auto figure = [&](const char* what, FigureChange::Unit unit,
                          const std::optional<Quantiles>& before,
                          std::optional<Quantiles> CheckedAnswer::*of) {
    if (before || today.*of)
      since.figures.push_back({what, unit, swaps(median(before), [&](const CheckedAnswer& a) {
                                 return median(a.*of);
                               })});
  };
  figure("time (p50)", FigureChange::Unit::time, lock.forecast->time_seconds,
         &CheckedAnswer::time_seconds);
  figure("cost (p50)", FigureChange::Unit::money, lock.forecast->cost_usd,
         &CheckedAnswer::cost_usd);
  since.notes = catalogs.notes();
  for (const std::string& name : files)
    since.notes.push_back(
        fmt::format("{} has changed: counted as {}", name,
                    rest_is_edit ? "your edit" : "reckon's share, as reckon has changed too"));
  since.same = !changes.any() && files.empty() &&
               std::ranges::all_of(since.figures, [](const FigureChange& f) {
                 return f.swaps.then == f.swaps.now;
               });

  for (CheckedExpectation& e : checked.expectations) {
    if (e.result.passed) continue;
    const auto& then_all = lock.forecast->expect;
    const auto was = std::ranges::find(then_all, e.result.text, &planner::LockedExpectation::text);
    if (was == then_all.end()) {  // a line that is new
      e.cause = planner::Cause::edit;
      continue;
    }
    const auto s = swaps(was->value.value_or(kNoAnswer), [&](const CheckedAnswer& a) {
      return value_of(a.expectations, e.result.text);
    });
    e.cause = planner::first_to_break(s, [&](double value) {
      return std::isfinite(value) && holds(value, e.expectation.comparison, e.expectation.value);
    });
  }
  checked.since = std::move(since);
  return {};
}

Expected<planner::Lock> lock_of_check(const std::string& file, const CheckSetting& setting,
                                      const LoadedScenario& loaded, const CheckedAnswer& answer) {
  if (loaded.trace)
    return tl::unexpected(
        Diagnostics{{Severity::error,
                     {file, 0, 0},
                     "a lock is for a training or a service, and this scenario is a queue",
                     "leave it out of --lock"}});
  auto text = locked_text(file, setting.changes);
  if (!text) return tl::unexpected(std::move(text.error()));
  LockSubject subject{
      .file = file, .text = std::move(*text), .providers = providers_of_lock(loaded), .used = {}};
  if (loaded.plan && loaded.plan->evidence)
    for (const ComparableRun& run : loaded.plan->evidence->runs) subject.used.push_back(run.id);
  planner::Lock lock = lock_of(subject, setting.choice, setting.catalog);
  lock.forecast = locked_forecast(answer, setting.sampling);
  return lock;
}

}  // namespace reckon::cli
