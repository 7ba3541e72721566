#include "report/explain/evidence.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/json_parts.h"
#include "report/markup.h"
#include "report/text.h"
#include "sim/accuracy/own_row.h"
#include "sim/base/unit_text.h"

namespace reckon {
namespace {

/// Of a logarithm: 0.3 is "+-35 %".
std::string plus_minus(double half_width) {
  return fmt::format("+-{:.0f} %", 100 * std::expm1(half_width));
}

bool is_own(const ComparableRun& run) { return run.source == kOwnSource; }

std::size_t number_of_own_runs(const StepEvidence& e) {
  return std::size_t(std::ranges::count_if(e.runs, is_own));
}

/// Is one of the runs of this job, or more like it than not?
bool has_near(const StepEvidence& e) {
  return e.of_this_job > 0 || (!e.runs.empty() && e.runs.front().correlation > 0.5);
}

std::string run_text(const ComparableRun& run) {
  const std::string stack = run.stack.empty() ? "" : " in " + run.stack;
  return fmt::format("{} x {}, {}{}: {:.3g} samples/s each ({}{})", run.accelerators,
                     run.accelerator, run.network, stack, run.each.v, is_own(run) ? "own, " : "",
                     run.id);
}

std::string count_text(const StepEvidence& e) {
  const auto runs = [](std::size_t n, std::string_view what) {
    return fmt::format("{} {} run{}", n, what, n == 1 ? "" : "s");
  };
  const std::size_t own = number_of_own_runs(e);
  std::string all = own > 0 ? runs(own, "own") + " and " : "";
  all += runs(e.runs.size() - own, "published");
  all += e.of_this_job == 0
             ? ", none of this network on this accelerator"
             : fmt::format(", {} of this network on this accelerator", e.of_this_job);
  if (has_near(e)) return all;
  const std::string none = "no evidence near: " + plus_minus(e.half_width);
  return e.runs.empty() ? none : fmt::format("{} ({})", none, all);
}

std::string factor_text(const StepEvidence& e) {
  return fmt::format("{:.3g} times the step model's ({:.3g} .. {:.3g}, {})", e.median, e.low,
                     e.high, plus_minus(e.half_width));
}

std::string trial_text(const TrialOffer& t) {
  const std::string cost =
      t.cost ? fmt::format(", about {}", format_usd(Usd{std::max(0.01, t.cost->v)})) : "";
  return fmt::format("{} steps of this job on {} accelerator{} ({}{}) make it {}", t.steps,
                     t.accelerators, t.accelerators == 1 ? "" : "s", format_duration(t.time), cost,
                     plus_minus(t.half_width));
}

}  // namespace

std::string evidence_section(const std::optional<StepEvidence>& evidence, int width) {
  if (!evidence) return "";
  std::string out = "\nEvidence\n";
  const auto add = [&](std::string_view name, const std::string& text) {
    std::string head = fmt::format("  {:<11}", name);
    for (const std::string& line : wrap(text, width - int(head.size()))) {
      out += head + line + '\n';
      head.assign(head.size(), ' ');
    }
  };
  add("comparable", count_text(*evidence));
  if (!evidence->runs.empty()) add("nearest", run_text(evidence->runs.front()));
  add("step", factor_text(*evidence));
  if (evidence->trial) add("a trial", trial_text(*evidence->trial));
  return out;
}

std::string evidence_sentences(const StepEvidence& e) {
  std::string text = fmt::format("The step is {}. Comparable: {}.", factor_text(e), count_text(e));
  if (!e.runs.empty()) text += fmt::format(" Nearest: {}.", run_text(e.runs.front()));
  if (e.trial) text += fmt::format(" {}.", trial_text(*e.trial));
  return text;
}

std::string evidence_table(const StepEvidence& e) {
  Columns rows;
  rows.row({"", "accelerators", "network", "stack", "samples/s each", "over the model's", "alike"});
  for (const ComparableRun& run : e.runs)
    rows.row({run.id, fmt::format("{} x {}", run.accelerators, run.accelerator), run.network,
              run.stack, fmt::format("{:.3g}", run.each.v),
              fmt::format("{:.2f}", std::exp(run.residual)),
              fmt::format("{:.0f} %", 100 * run.correlation)});
  return "\nComparable runs (--without-evidence ID leaves one out)\n" + rows.text();
}

std::string evidence_svg(const StepEvidence& e, std::string_view title) {
  constexpr double kWidth = 640, kHeight = 400, kLeft = 80, kTop = 50;
  double most = std::max({std::abs(std::log(e.low)), std::abs(std::log(e.high)), 0.1});
  for (const ComparableRun& run : e.runs) most = std::max(most, std::abs(run.residual));
  most *= 1.05;
  const auto x_of = [&](double alike) { return kLeft + kWidth * alike; };
  const auto y_of = [&](double log_rate) { return kTop + kHeight * (0.5 - log_rate / most / 2); };
  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 760 530\" width=\"760\" "
      "height=\"530\" font-family=\"sans-serif\" font-size=\"12\">\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
      "<text x=\"{}\" y=\"28\" font-size=\"15\">{}: {} comparable runs; the forecast is {:.2f} "
      "times the step model's rate, {}</text>\n",
      kLeft, markup_text(title), e.runs.size(), 1 / e.median, plus_minus(e.half_width));
  // The forecast's rate, and nine of ten: rates are the inverse of the step's time.
  const double high = y_of(-std::log(e.low)), low = y_of(-std::log(e.high));
  out += fmt::format(
      "<rect x=\"{}\" y=\"{:.1f}\" width=\"{}\" height=\"{:.1f}\" fill=\"#88CCEE\" "
      "fill-opacity=\"0.35\"/>\n<line x1=\"{}\" y1=\"{:.1f}\" x2=\"{}\" y2=\"{:.1f}\" "
      "stroke=\"#332288\"/>\n",
      kLeft, high, kWidth, low - high, kLeft, y_of(-std::log(e.median)), kLeft + kWidth,
      y_of(-std::log(e.median)));
  for (const double factor : {0.25, 0.5, 0.8, 1.0, 1.25, 2.0, 4.0}) {
    if (std::abs(std::log(factor)) > most) continue;
    const double y = y_of(std::log(factor));
    out += fmt::format(
        "<line x1=\"{0}\" y1=\"{1:.1f}\" x2=\"{2}\" y2=\"{1:.1f}\" stroke=\"#dddddd\"/>\n"
        "<text x=\"{3}\" y=\"{4:.1f}\" text-anchor=\"end\">{5}</text>\n",
        kLeft, y, kLeft + kWidth, kLeft - 8, y + 4, factor);
  }
  for (int tenths = 0; tenths <= 10; tenths += 2)
    out += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{} %</text>\n",
                       x_of(tenths / 10.0), kTop + kHeight + 20, 10 * tenths);
  for (const ComparableRun& run : e.runs)
    out += fmt::format(
        "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4\" fill=\"{}\" fill-opacity=\"0.6\"><title>{}"
        "</title></circle>\n",
        x_of(std::clamp(run.correlation, 0.0, 1.0)), y_of(run.residual),
        run.same_job ? "#117733" : "#CC6677", markup_text(run_text(run)));
  return out +
         fmt::format(
             "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">similarity (green: this "
             "network on this accelerator)</text>\n"
             "<text transform=\"translate(24 {:.1f}) rotate(-90)\" text-anchor=\"middle\">rate "
             "over the step model's</text>\n</svg>\n",
             kLeft + kWidth / 2, kTop + kHeight + 45, kTop + kHeight / 2);
}

Json evidence_object(const std::optional<StepEvidence>& evidence, std::size_t most) {
  if (!evidence) return nullptr;
  const StepEvidence& e = *evidence;
  Json runs = Json::array();
  for (std::size_t k = 0; k < std::min(most, e.runs.size()); ++k) {
    const ComparableRun& run = e.runs[k];
    runs.push_back({{"id", run.id},
                    {"source", run.source},
                    {"accelerator", run.accelerator},
                    {"accelerators", run.accelerators},
                    {"network", run.network},
                    {"stack", text_or_null(run.stack)},
                    {"samples_per_second_each", run.each.v},
                    {"of_this_job", run.same_job},
                    {"correlation", run.correlation},
                    {"rate_over_model", std::exp(run.residual)}});
  }
  Json out = {{"step_factor", {{"p5", e.low}, {"p50", e.median}, {"p95", e.high}}},
              {"comparable", e.runs.size()},
              {"of_this_job", e.of_this_job},
              {"own", number_of_own_runs(e)},
              {"nearest", std::move(runs)},
              {"trial", nullptr}};
  if (e.trial)
    out["trial"] = {{"steps", e.trial->steps},
                    {"accelerators", e.trial->accelerators},
                    {"seconds", e.trial->time.count()},
                    {"cost_usd", e.trial->cost ? number(e.trial->cost->v) : Json(nullptr)},
                    {"half_width", std::expm1(e.trial->half_width)}};
  return out;
}

}  // namespace reckon
