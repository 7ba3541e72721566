#include "report/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "report/explain/evidence.h"
#include "report/notice.h"
#include "report/prices.h"
#include "report/text.h"
#include "sim/base/unit_text.h"

namespace reckon {
namespace {

constexpr int kBarWidth = 40;
constexpr std::size_t kAssumptionsShown = 5;
constexpr double kNoise = 0.0005;  // a share that would be printed as 0.0 % is not printed

std::string share_text(double part, double whole) {
  return whole > 0 ? fmt::format("{:.1f} %", 100 * part / whole) : "";
}

std::string forecast_answer(const Forecast& f) {
  Columns answer(Columns::Kind::facts);
  answer.row({"time", time_range(f.time_seconds)});
  if (f.cost_usd) {
    answer.row({"cost", usd_range(*f.cost_usd)});
  } else {
    answer.row({"cost", "unknown: see the warnings"});
  }
  answer.row({"goodput", percent_range(f.goodput)});
  if (f.energy) {
    answer.row({"energy", energy_text(f)});
    answer.row({"CO2", co2_text(f)});
  }
  return answer.text() +
         fmt::format("  median (5th .. 95th percentile) of {} replications, seed {}, {}\n",
                     format_count(f.replications), f.seed, engine_text("engine", f.engine));
}

/// Each of several jobs, with times since its own submit.
std::string jobs(const Forecast& f) {
  if (f.jobs.size() < 2) return "";
  Columns rows;
  rows.row({"", "submitted", "waits for nodes", "takes", "ends at"});
  for (const JobForecast& job : f.jobs)
    rows.row({job.name, time_value(job.submit), time_value(Seconds{job.queued_seconds.p50}),
              time_range(job.time_seconds), time_range(job.finish_seconds)});
  return "\nThe jobs (waits: median; ends: since the first submit)\n" + rows.text();
}

/// What the delay of asynchronous updates costs the job whose step is shown, the first.
std::string staleness_text(const Forecast& f) {
  if (f.jobs.empty() || !f.jobs.front().delayed) return "";
  return fmt::format(", {} of them for staleness (mean delay {:.1f} updates)",
                     format_count(std::round(f.jobs.front().delayed->steps_of_delay())),
                     f.step.delay);
}

std::string step(const Forecast& f) {
  const StepEstimate& s = f.step;
  const double whole = s.step.count();
  const auto line = [&](const char* name, Seconds t) {
    return std::vector<std::string>{name, format_duration(t), share_text(t.count(), whole),
                                    bar(t.count() / whole, kBarWidth)};
  };
  Columns parts;
  parts.row(line("compute", s.compute));
  if (s.update.count() > 0) parts.row(line("weight update", s.update));
  parts.row(line("exposed communication", s.exposed_communication));
  if (s.exposed_input.count() > 0) parts.row(line("waiting for input", s.exposed_input));
  if (s.bubble.count() > 0) parts.row(line("pipeline bubble", s.bubble));
  if (s.host.count() > 0) parts.row(line("framework between steps", s.host));
  Columns facts(Columns::Kind::facts);
  facts.row(
      {"step", fmt::format("{}, bound by {}", format_duration(s.step), to_text(s.bottleneck))});
  facts.row({"throughput", throughput_text(s, f.accelerators, f.tokens_per_sample)});
  facts.row({"length", fmt::format("{} step{}{}", format_count(double(f.steps)),
                                   f.steps == 1 ? "" : "s", staleness_text(f))});
  facts.row({"memory", fmt::format("{} on each accelerator", memory_text(f.memory))});
  if (s.communication.count() > 0)
    facts.row({"communication",
               fmt::format(
                   "{} a step, {} of it hidden behind compute{}", format_duration(s.communication),
                   format_duration(std::max(Seconds{0}, s.communication - s.exposed_communication)),
                   s.all_reduce.empty() ? "" : ", " + s.all_reduce + " all-reduce")});
  facts.row({"input", fmt::format("{} a step{}", format_duration(s.input),
                                  s.exposed_input.count() > 0 ? ": longer than the rest of the step"
                                                              : ", hidden")});
  const std::string whose = f.jobs.size() > 1 ? " of job " + f.jobs.front().name : "";
  return "\nThe step" + whose + "\n" + facts.text() + parts.text();
}

std::string cost(const Forecast& f) {
  Columns parts;
  if (f.cost_usd)
    for (std::size_t p = 0; p < kCostParts; ++p) {
      const double usd = f.cost_breakdown_usd[p];
      const double share = usd / f.cost_usd->mean;
      if (!(share >= kNoise)) continue;
      parts.row({std::string(to_text(CostPart(p))), format_usd(Usd{usd}),
                 share_text(usd, f.cost_usd->mean), bar(share, kBarWidth)});
    }
  for (const auto& [pool, hours] : f.node_hours)
    parts.row({"nodes of " + pool, format_count(hours) + " node-hours"});
  const std::string prices = f.prices_as_of.empty() ? "" : ", prices as of " + f.prices_as_of;
  return fmt::format("\nCost by part (mean{})\n", prices) + parts.text() + price_lines(f);
}

std::string time_spent(const Forecast& f) {
  Columns causes;
  causes.row(
      {"goodput", fmt::format("{:.1f} %", 100 * f.goodput.mean), bar(f.goodput.mean, kBarWidth)});
  for (std::size_t c = 0; c < kBadputCauses; ++c) {
    if (f.badput[c] < kNoise) continue;
    std::string name(to_text(Badput(c)));
    std::replace(name.begin(), name.end(), '_', ' ');
    causes.row({name, fmt::format("{:.1f} %", 100 * f.badput[c]), bar(f.badput[c], kBarWidth)});
  }
  const double without_nodes =
      f.badput[std::size_t(Badput::waiting)] + f.badput[std::size_t(Badput::provisioning)];
  std::string held;  // in a queue nobody holds an accelerator that could be lost
  if (without_nodes >= kNoise && without_nodes < 1)
    held = fmt::format("  of the time with nodes, waits and provisioning apart: goodput {:.1f} %\n",
                       100 * f.goodput.mean / (1 - without_nodes));
  return "\nWhere time goes (mean share of accelerator time)\n" + causes.text() + held;
}

std::string interval_text(Seconds interval) {
  return interval.count() > 0
             ? "a checkpoint every " + format_duration(interval) + " of useful work"
             : "no checkpoints";
}

/// Of several jobs with several intervals each is named.
std::string intervals_text(const Forecast& f) {
  std::vector<std::pair<Seconds, std::vector<std::string>>> intervals;
  for (const JobForecast& job : f.jobs) {
    const auto same = std::ranges::find(intervals, job.checkpoint_interval,
                                        [](const auto& entry) { return entry.first; });
    if (same == intervals.end())
      intervals.push_back({job.checkpoint_interval, {job.name}});
    else
      same->second.push_back(job.name);
  }
  if (intervals.size() < 2) return interval_text(f.checkpoint_interval);
  std::string text;
  for (const auto& [interval, jobs] : intervals)
    text += (text.empty() ? "" : "; ") + names_of_jobs(jobs) + ": " + interval_text(interval);
  return text;
}

std::string interruptions(const Forecast& f, int width) {
  Columns causes;
  for (std::size_t c = 0; c < kInterruptionCauses; ++c)
    causes.row({std::string(to_text(Interruption(c))), fmt::format("{:.2f}", f.interruptions[c])});
  std::string out =
      fmt::format("\nInterruptions (mean of a run; {})\n", intervals_text(f)) + causes.text();
  if (const std::string notice = notice_sentences(f); !notice.empty())
    for (const std::string& line : wrap(notice, width - 2)) out += "  " + line + '\n';
  if (const std::string restart = restart_sentences(f); !restart.empty())
    for (const std::string& line : wrap(restart, width - 2)) out += "  " + line + '\n';
  return out;
}

struct EffectRow {
  std::string what, time, cost;
};

EffectRow effect_row(const AssumptionEffect& a, std::size_t rank) {
  EffectRow row{fmt::format("{}. {}", rank, a.what), signed_duration(a.time_effect_seconds),
                "cost unknown"};
  if (a.cost_effect_usd) row.cost = signed_usd(*a.cost_effect_usd);
  return row;
}

/// The effects stand to the right of the first line; the rest of a long name, value and source
/// below it.
std::string assumptions(const Forecast& f, int width) {
  if (f.assumptions.empty()) return "";
  const std::size_t shown = std::min(kAssumptionsShown, f.assumptions.size());
  std::vector<EffectRow> rows;
  int name = 0, time = 0, cost = 0;
  for (std::size_t k = 0; k < shown; ++k) {
    rows.push_back(effect_row(f.assumptions[k], k + 1));
    name = std::max(name, int(rows.back().what.size()));
    time = std::max(time, int(rows.back().time.size()));
    cost = std::max(cost, int(rows.back().cost.size()));
  }
  name = std::min(name, width - 2 - 2 - time - 2 - cost);
  std::string out =
      fmt::format("\nLargest uncertainties ({} of {} assumptions): change over each range\n", shown,
                  f.assumptions.size());
  for (std::size_t k = 0; k < shown; ++k) {
    const auto lines = wrap(rows[k].what, name);
    out += fmt::format("  {:<{}}  {:>{}}  {:>{}}\n", lines.front(), name, rows[k].time, time,
                       rows[k].cost, cost);
    for (std::size_t l = 1; l < lines.size(); ++l) out += "     " + lines[l] + '\n';
    for (const std::string& line :
         wrap(f.assumptions[k].value + "; " + f.assumptions[k].source, width - 5))
      out += "     " + line + '\n';
  }
  return out;
}

std::string items(const char* title, const std::vector<std::string>& texts, int width) {
  if (texts.empty()) return "";
  std::string out = fmt::format("\n{}\n", title);
  for (const std::string& text : texts) {
    const char* lead = "  - ";
    for (const std::string& line : wrap(text, width - 4)) {
      out += lead + line + '\n';
      lead = "    ";
    }
  }
  return out;
}

std::string warnings(const Forecast& f, int width) { return items("Warnings", f.warnings, width); }
std::string calibrations(const Forecast& f, int width) {
  return items("Calibrated by", f.calibrations, width);
}

std::string does_not_fit(const Forecast& f) {
  const auto large =
      std::ranges::find_if(f.jobs, [](const JobForecast& job) { return !job.memory.fits(); });
  const bool of_several = f.jobs.size() > 1 && large != f.jobs.end();
  const MemoryEstimate& m = of_several ? large->memory : f.memory;
  const std::string what = of_several ? "job " + large->name : "the plan";
  Columns parts;
  const auto line = [&](const char* name, Bytes b) { parts.row({name, format_bytes(b)}); };
  line("parameters", m.parameters);
  line("gradients", m.gradients);
  line("optimizer", m.optimizer);
  line("activations", m.activations);
  line("workspace", m.workspace);
  if (m.gathered.v > 0) line("gathered parameters and gradients", m.gathered);
  if (m.evidence.v != 0) line("comparable runs", m.evidence);
  if (m.fragmentation.v > 0) line("fragmentation", m.fragmentation);
  line("reserve", m.reserve);
  line("required", m.required());
  line("available", m.available);
  parts.row({"P(out of memory)", probability_text(m.out_of_memory())});
  return fmt::format(
             "  not feasible: {} does not fit into the memory of an accelerator, so {} was "
             "not simulated\n",
             what, of_several ? "the plan" : "it") +
         parts.text();
}

}  // namespace

std::string forecast_table(const Forecast& f, int width) {
  const std::string title = f.scenario + "\n";
  if (!f.feasible) return title + does_not_fit(f) + warnings(f, width);
  return title + forecast_answer(f) + jobs(f) + step(f) + evidence_section(f.evidence, width) +
         cost(f) + time_spent(f) + interruptions(f, width) + assumptions(f, width) +
         calibrations(f, width) + warnings(f, width);
}

}  // namespace reckon
