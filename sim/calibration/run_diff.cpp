#include "sim/calibration/run_diff.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "sim/base/unit_text.h"
#include "sim/calibration/run_timeline.h"

namespace reckon {
namespace {

/// Steps at steady state: of those that the result rests on, all but the first of each start.
std::vector<StepRecord> steady(const std::vector<StepRecord>& useful) {
  std::vector<StepRecord> steps;
  for (std::size_t k = 1; k < useful.size(); ++k)
    if (useful[k].attempt == useful[k - 1].attempt) steps.push_back(useful[k]);
  return steps.empty() ? useful : steps;
}

Seconds median_of(const std::vector<StepRecord>& steps, Seconds StepRecord::*part) {
  std::vector<double> values;
  for (const StepRecord& s : steps) values.push_back((s.*part).count());
  return Seconds{quantiles(std::move(values)).p50};
}

Seconds total_of(const Timeline& timeline, std::string_view category) {
  SimDuration total{};
  for (const Span& s : timeline.spans)
    if (s.category == category && s.pool < 0) total += s.end - s.begin;
  return to_seconds(total);
}

struct Effect {
  Seconds longer{};
  std::string text;
};

std::string by_how_much(Seconds longer) {
  return fmt::format("{} {}", format_duration(Seconds{std::abs(longer.count())}),
                     longer.count() < 0 ? "less" : "more");
}

class Differ {
 public:
  Differ(const SaidForecast& forecast, const Measurements& run)
      : forecast_(forecast), run_(run), useful_(run.useful_steps()), steady_(steady(useful_)) {}

  RunDiff make() {
    diff_.scenario = forecast_.scenario;
    diff_.forecast_time = forecast_.time_seconds;
    const Seconds time = run_.ends.back().at;
    diff_.within_interval =
        forecast_.time_seconds.p5 <= time.count() && time.count() <= forecast_.time_seconds.p95;
    add_steps();
    add_categories();
    diff_.spans.push_back({"time", Seconds{forecast_.time_seconds.p50}, time});
    std::stable_sort(effects_.begin(), effects_.end(), [](const Effect& a, const Effect& b) {
      return std::abs(a.longer.count()) > std::abs(b.longer.count());
    });
    for (Effect& e : effects_) diff_.causes.push_back(std::move(e.text));
    return std::move(diff_);
  }

 private:
  void add_steps() {
    const std::array parts{
        std::tuple{"step", forecast_.step, &StepRecord::seconds},
        std::tuple{"step.compute", forecast_.compute, &StepRecord::compute},
        std::tuple{"step.communication", forecast_.communication, &StepRecord::communication},
        std::tuple{"step.exposed_communication", forecast_.exposed_communication,
                   &StepRecord::exposed_communication},
        std::tuple{"step.input", forecast_.input, &StepRecord::input}};
    for (const auto& [name, said, part] : parts)
      diff_.spans.push_back({name, said, median_of(steady_, part)});
  }

  void add_categories() {
    const double mean = forecast_.time_seconds.mean;
    Seconds trained{}, kept{};
    for (const StepRecord& s : useful_) {
      trained += s.seconds;
      kept += s.seconds - s.input;
    }
    const Seconds time = run_.ends.back().at;
    if (forecast_.goodput_range && time.count() > 0)
      diff_.goodput = {*forecast_.goodput_range, kept / time};
    const double share = forecast_.goodput + forecast_.badput[std::size_t(Badput::data_loading)];
    add("training", Seconds{share * mean}, trained);
    const Timeline timeline = timeline_of(run_);
    for (const Badput cause : {Badput::provisioning, Badput::waiting, Badput::initialization,
                               Badput::checkpoint_save, Badput::checkpoint_restore})
      add(std::string(to_text(cause)), Seconds{forecast_.badput[std::size_t(cause)] * mean},
          total_of(timeline, to_text(cause)));
    Seconds lost{};
    for (const InterruptionRecord& i : run_.interruptions) lost += i.lost_work;
    if (forecast_.lost_work_seconds)
      diff_.lost_work_seconds = {*forecast_.lost_work_seconds, lost.count()};
    add(std::string(to_text(Badput::lost_work)),
        Seconds{forecast_.badput[std::size_t(Badput::lost_work)] * mean}, lost);
  }

  void add(const std::string& name, Seconds said, Seconds took) {
    diff_.spans.push_back({name, said, took});
    const Seconds longer = took - said;
    constexpr double kWorthSaying = 0.01;  // of the time
    if (std::abs(longer.count()) < kWorthSaying * forecast_.time_seconds.mean) return;
    std::string text = fmt::format("{}: {} than the forecast's {}", name, by_how_much(longer),
                                   format_duration(said));
    if (name == "training")
      text += fmt::format("; a step took {}, forecast {}",
                          format_duration(median_of(steady_, &StepRecord::seconds)),
                          format_duration(forecast_.step));
    if (name == "lost_work")
      text += fmt::format(
          "; {} interruptions, forecast {:.2f}", run_.interruptions.size(),
          forecast_.interruptions[0] + forecast_.interruptions[1] + forecast_.interruptions[2]);
    effects_.push_back({longer, std::move(text)});
  }

  const SaidForecast& forecast_;
  const Measurements& run_;
  const std::vector<StepRecord> useful_, steady_;
  RunDiff diff_;
  std::vector<Effect> effects_;
};

/// From a checkpoint, or from files of its own where the program is not ours (it has no stack).
bool can_go_on(const Measurements& run) {
  const bool foreign = !run.runs.empty() && run.runs.front().stack.empty();
  return foreign || std::ranges::any_of(run.checkpoints, [](const CheckpointRecord& c) {
           return c.action == CheckpointAction::save;
         });
}

}  // namespace

std::optional<double> DiffSpan::error() const {
  if (run.count() <= 0) return std::nullopt;
  return forecast / run - 1;
}

Expected<RunDiff> diff_run(const SaidForecast& forecast, const Measurements& run,
                           std::string_view run_file) {
  Diagnostics problems;
  const auto problem = [&](std::string what, std::string hint) {
    problems.push_back(
        {Severity::error, {std::string(run_file), 0, 0}, std::move(what), std::move(hint)});
  };
  if (run.useful_steps().empty()) problem("the run has no step", "");
  if (run.ends.empty() || !run.ends.back().finished)
    problem("the run is not finished", can_go_on(run)
                                           ? "go on with it: reckon run ... --resume"
                                           : "it left no checkpoint to go on from: run it again");
  for (const RunRecord& r : run.runs) {
    if (r.scenario != forecast.scenario)
      problem(fmt::format("the run is of scenario '{}', the forecast of '{}'", r.scenario,
                          forecast.scenario),
              "");
    else if (r.steps != forecast.steps)
      problem(fmt::format("the run has {} steps, the forecast {}", r.steps, forecast.steps), "");
    break;
  }
  if (!problems.empty()) return tl::unexpected(std::move(problems));
  return Differ(forecast, run).make();
}

}  // namespace reckon
