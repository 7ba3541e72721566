#include "sim/measurement/run/diff.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "sim/base/unit_text.h"
#include "sim/measurement/run/bill.h"
#include "sim/measurement/run/pauses.h"
#include "sim/measurement/run/timeline.h"

namespace reckon {
namespace {

constexpr std::array kStepWaits{&StepWaits::gradients, &StepWaits::parameters, &StepWaits::tensor,
                                &StepWaits::context,   &StepWaits::expert,     &StepWaits::pipeline,
                                &StepWaits::bubble};
constexpr double kWorthSaying = 0.01;  // of the forecast's whole

/// Steps at steady state: of those that the result rests on, all but the first of each start.
std::vector<StepRecord> steady(const std::vector<StepRecord>& useful) {
  std::vector<StepRecord> steps;
  for (std::size_t k = 1; k < useful.size(); ++k)
    if (useful[k].attempt == useful[k - 1].attempt) steps.push_back(useful[k]);
  return steps.empty() ? useful : steps;
}

/// Means, because parts' means add up to the mean of the whole.
Seconds mean_part_of(const std::vector<StepRecord>& steps, Seconds StepRecord::*part) {
  Seconds sum{};
  for (const StepRecord& s : steps) sum += s.*part;
  return sum / double(std::max<std::size_t>(steps.size(), 1));
}

/// Beside the mean it tells hiccups of a few steps from a pace that is another.
Seconds median_step(const std::vector<StepRecord>& steps) {
  std::vector<double> seconds;
  for (const StepRecord& s : steps) seconds.push_back(s.seconds.count());
  return Seconds{quantiles(std::move(seconds)).p50};
}

Seconds total_of(const Timeline& timeline, std::string_view category) {
  SimDuration total{};
  for (const Span& s : timeline.spans)
    if (s.category == category && s.pool < 0) total += s.end - s.begin;
  return to_seconds(total);
}

double effect_on(const std::map<std::string, double>& effects, std::string_view row) {
  const auto found = effects.find(std::string(row));
  return found == effects.end() ? 0 : found->second;
}

std::string by_how_much(Seconds longer) {
  return fmt::format("{} {}", format_duration(Seconds{std::abs(longer.count())}),
                     longer.count() < 0 ? "less" : "more");
}

std::string by_how_much(Usd dearer) {
  return fmt::format("{} {}", format_usd(Usd{std::abs(dearer.v)}), dearer.v < 0 ? "less" : "more");
}

class Differ {
 public:
  Differ(const SaidForecast& forecast, const Measurements& run)
      : forecast_(forecast),
        run_(without_pauses(run)),
        useful_(run_.useful_steps()),
        steady_(steady(useful_)) {
    diff_.paused = time_paused(run);
  }

  RunDiff make() {
    diff_.scenario = forecast_.scenario;
    diff_.time = {forecast_.time_seconds, run_.ends.back().at.count()};
    diff_.names_assumptions =
        std::any_of(forecast_.assumptions.begin(), forecast_.assumptions.end(),
                    [](const AssumptionEffect& a) { return !a.effects_seconds.empty(); });
    add_steps();
    add_categories();
    diff_.spans.push_back({"time", Seconds{forecast_.time_seconds.mean}, run_.ends.back().at});
    std::stable_sort(causes_.begin(), causes_.end(), is_larger);
    for (DiffCause& c : causes_) {
      const bool training = c.row == "training";
      diff_.causes.push_back(std::move(c));
      if (training) add_step_causes();
    }
    if (forecast_.rates && forecast_.cost_usd) add_money();
    return std::move(diff_);
  }

 private:
  static bool is_larger(const DiffCause& a, const DiffCause& b) {
    return std::abs(a.difference) > std::abs(b.difference);
  }

  void add_steps() {
    run_parts_ = {mean_part_of(steady_, &StepRecord::compute),
                  mean_part_of(steady_, &StepRecord::exposed_communication),
                  mean_part_of(steady_, &StepRecord::input),
                  mean_part_of(steady_, &StepRecord::update),
                  {}};
    said_parts_ = forecast_.parts;
    if (!forecast_.says_update) run_parts_.exposed_input = run_parts_.update = Seconds{};
    // Servers update while the worker waits for them: in a run that is one time.
    if (waits_for_servers()) {
      said_parts_.exposed_communication += said_parts_.update;
      said_parts_.update = Seconds{};
    }
    const Seconds step = mean_part_of(steady_, &StepRecord::seconds);
    run_parts_.other = step - run_parts_.compute - run_parts_.exposed_communication -
                       run_parts_.exposed_input - run_parts_.update;
    diff_.spans.push_back({"step.median", forecast_.step, median_step(steady_)});
    diff_.spans.push_back({"step", forecast_.step, step});
    for (const StepPart& part : kStepParts) {
      if (part.time == &StepParts::exposed_communication)
        diff_.spans.push_back({"step.communication", forecast_.communication,
                               mean_part_of(steady_, &StepRecord::communication)});
      diff_.spans.push_back(
          {std::string(part.name), said_parts_.*part.time, run_parts_.*part.time});
    }
    add_waits();
  }

  /// Where there is more to wait for than gradients.
  void add_waits() {
    StepWaits run;
    for (Seconds StepWaits::*part : kStepWaits)
      for (const StepRecord& s : steady_) run.*part += s.waits.*part / double(steady_.size());
    const auto stages = [](const StepWaits& w) { return w.pipeline + w.bubble; };
    const auto others = [&](const StepWaits& w) {
      return w.parameters + w.tensor + w.context + w.expert + stages(w);
    };
    if (others(run).count() <= 0) return;
    const auto row = [&](const char* name, Seconds said, Seconds took) {
      if (said.count() > 0 || took.count() > 0)
        diff_.spans.push_back({fmt::format("step.waits.{}", name), said, took});
    };
    const StepWaits& said = forecast_.waits;
    row("gradients", said.gradients, run.gradients);
    row("parameters", said.parameters, run.parameters);
    row("tensor", said.tensor, run.tensor);
    row("context", said.context, run.context);
    row("expert", said.expert, run.expert);
    row("stages", stages(said), stages(run));
  }

  bool waits_for_servers() const { return mean_part_of(steady_, &StepRecord::push).count() > 0; }

  void add_categories() {
    const double mean = forecast_.time_seconds.mean;
    Seconds trained{}, kept{};
    for (const StepRecord& s : useful_) {
      trained += s.seconds;
      kept += s.seconds - s.input;
    }
    // In a forecast evaluations are training, too.
    std::map<std::int64_t, Seconds> evaluations;  // by step, as they count: the last one made
    for (const EvaluationRecord& e : run_.evaluations)
      if (e.rank == 0) evaluations[e.step] = e.seconds;
    for (const auto& [step, seconds] : evaluations) trained += seconds, kept += seconds;
    const Seconds time = run_.ends.back().at;
    if (forecast_.goodput_range && time.count() > 0)
      diff_.goodput = {*forecast_.goodput_range, kept / time};
    const double share = forecast_.goodput + forecast_.badput[std::size_t(Badput::data_loading)];
    add("training", Seconds{share * mean}, trained);
    Seconds known = trained;
    const Timeline timeline = timeline_of(run_);
    for (const Badput cause : {Badput::provisioning, Badput::waiting, Badput::initialization,
                               Badput::checkpoint_save, Badput::checkpoint_restore}) {
      const Seconds took = total_of(timeline, to_text(cause));
      add(to_text(cause), Seconds{forecast_.badput[std::size_t(cause)] * mean}, took);
      known += took;
    }
    Seconds lost{};
    for (const InterruptionRecord& i : run_.interruptions) lost += i.lost_work;
    if (forecast_.lost_work_seconds)
      diff_.lost_work_seconds = {*forecast_.lost_work_seconds, lost.count()};
    add(to_text(Badput::lost_work),
        Seconds{forecast_.badput[std::size_t(Badput::lost_work)] * mean}, lost);
    add("other", Seconds{}, time - known - lost);
  }

  void add(std::string_view name, Seconds said, Seconds took) {
    diff_.spans.push_back({std::string(name), said, took});
    const Seconds longer = took - said;
    if (std::abs(longer.count()) < kWorthSaying * forecast_.time_seconds.mean) return;
    DiffCause cause{std::string(name), longer.count(), "", {}};
    cause.text = fmt::format("{}: {} than the forecast's {}", name, by_how_much(longer),
                             format_duration(said));
    if (name == "training")
      cause.text += fmt::format("; a step took {}, forecast {}",
                                format_duration(mean_part_of(steady_, &StepRecord::seconds)),
                                format_duration(forecast_.step));
    else
      cause.assumptions = explain_seconds(name, longer.count(), Around::mean);
    if (name == "lost_work")
      cause.text += fmt::format(
          "; {} interruptions, forecast {:.2f}", run_.interruptions.size(),
          forecast_.interruptions[0] + forecast_.interruptions[1] + forecast_.interruptions[2]);
    causes_.push_back(std::move(cause));
  }

  std::vector<Explaining> explain_seconds(std::string_view row, double longer,
                                          Around around) const {
    std::vector<EffectOn> effects;
    for (const AssumptionEffect& a : forecast_.assumptions) {
      double effect = effect_on(a.effects_seconds, row);
      if (row == "step.exposed_communication" && waits_for_servers())
        effect += effect_on(a.effects_seconds, "step.update");
      effects.push_back({&a, effect});
    }
    return most_plausible(effects, longer, around);
  }

  /// What made the steps longer, by their parts. Where none of them did, all together did: more
  /// steps than forecast, evaluations, the first steps of the starts.
  void add_step_causes() {
    std::vector<DiffCause> parts;
    for (const StepPart& part : kStepParts) {
      const Seconds said = said_parts_.*part.time, took = run_parts_.*part.time;
      const Seconds longer = took - said;
      if (std::abs(longer.count()) * double(forecast_.steps) <
          kWorthSaying * forecast_.time_seconds.mean)
        continue;
      DiffCause cause{std::string(part.name), longer.count(), "", {}};
      cause.text = fmt::format("{}: {} a step than the forecast's {}", part.name,
                               by_how_much(longer), format_duration(said));
      cause.assumptions = explain_seconds(part.name, longer.count(), Around::medians);
      parts.push_back(std::move(cause));
    }
    std::stable_sort(parts.begin(), parts.end(), is_larger);
    DiffCause& training = diff_.causes.back();
    if (std::all_of(parts.begin(), parts.end(),
                    [](const DiffCause& c) { return c.assumptions.empty(); }))
      training.assumptions = explain_seconds("training", training.difference, Around::mean);
    for (DiffCause& c : parts) diff_.causes.push_back(std::move(c));
  }

  void add_money() {
    const RunBill bill = bill_of(*forecast_.rates, run_);
    diff_.cost_usd = {*forecast_.cost_usd, to_usd(bill.total).v};
    std::vector<DiffCause> causes;
    for (std::size_t p = 0; p < kCostParts; ++p) {
      const std::string_view part = to_text(CostPart(p));
      const DiffCost row{fmt::format("cost.{}", part), forecast_.cost_breakdown_usd[p],
                         to_usd(bill.parts[p]).v};
      diff_.costs.push_back(row);
      const double dearer = row.run_usd - row.forecast_usd;
      if (std::abs(dearer) < kWorthSaying * forecast_.cost_usd->mean) continue;
      DiffCause cause{row.name, dearer, "", {}};
      cause.text =
          fmt::format("{}: {} than the forecast's {}{}", row.name, by_how_much(Usd{dearer}),
                      format_usd(Usd{row.forecast_usd}), node_hours_text(bill));
      std::vector<EffectOn> effects;
      for (const AssumptionEffect& a : forecast_.assumptions)
        effects.push_back({&a, effect_on(a.effects_usd, part)});
      cause.assumptions = most_plausible(effects, dearer, Around::mean);
      causes.push_back(std::move(cause));
    }
    diff_.costs.push_back({"cost", forecast_.cost_usd->mean, to_usd(bill.total).v});
    std::stable_sort(causes.begin(), causes.end(), is_larger);
    for (DiffCause& c : causes) diff_.causes.push_back(std::move(c));
  }

  std::string node_hours_text(const RunBill& bill) const {
    std::string text;
    for (const auto& [pool, hours] : bill.node_hours)
      for (const auto& [said_pool, said] : forecast_.node_hours)
        if (said_pool == pool)
          text += fmt::format("; pool {} was paid for {:.3g} node-hours, forecast {:.3g}", pool,
                              hours, said);
    return text;
  }

  const SaidForecast& forecast_;
  const Measurements run_;
  const std::vector<StepRecord> useful_, steady_;
  StepParts said_parts_, run_parts_;
  RunDiff diff_;
  std::vector<DiffCause> causes_;
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

std::optional<double> DiffCost::error() const {
  if (run_usd <= 0) return std::nullopt;
  return forecast_usd / run_usd - 1;
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
