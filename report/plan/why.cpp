#include <fmt/format.h>

#include <algorithm>

#include "report/plan/parts.h"
#include "report/plan/plan.h"
#include "report/table.h"
#include "report/text.h"
#include "sim/base/printed_currency.h"
#include "sim/base/text/shell_word.h"
#include "sim/base/unit_text.h"

// What would change the choice, and what is worth measuring before it is made.
namespace reckon {
namespace {

using planner::Answer;
using planner::Flip;
using planner::Lever;
using planner::Measurement;
using planner::MeasurementKind;
using planner::Objective;
using planner::RankedPlan;

constexpr std::size_t kMeasurementsShown = 3;
constexpr std::size_t kRevealedShown = 4;

std::string text_of_factor(double factor) {
  if (factor > 0.5 && factor < 2) return fmt::format("{:+.1f} %", 100 * (factor - 1));
  return fmt::format("{:.2g} times", factor);
}

std::string lever_text(Lever lever, const RankedPlan& chosen) {
  const planner::Hardware& h = chosen.hardware;
  const std::string goods = h.own                                      ? "your nodes"
                            : h.slice.empty() && h.accelerator.empty() ? h.machine + " nodes"
                                                                       : h.accelerator + " nodes";
  const std::string_view pricing = to_text(chosen.offer.pricing);
  switch (lever) {
    case Lever::price_here:
      return fmt::format("price of {} in {} ({})", goods,
                         chosen.offer.region.empty() ? "that place" : chosen.offer.region, pricing);
    case Lever::price_everywhere:
      return fmt::format("price of {} in all regions of {} ({})", goods, to_text(h.provider),
                         pricing);
    case Lever::reclaims:
      return "spot reclaim rate";
    case Lever::network:
      return "network bandwidth of all nodes";
  }
  return "";
}

/// "1/8, 1/2, 2 and 8".
std::string factors_tried() {
  std::string small, large;
  for (const double tried : planner::kFactorsTried) {
    small = fmt::format("1/{:.0f}, ", tried) + small;
    if (!large.empty()) large += tried == planner::kFactorsTried.back() ? " and " : ", ";
    large += fmt::format("{:.0f}", tried);
  }
  return small + large;
}

std::string better_word(Objective objective) {
  switch (objective) {
    case Objective::cost:
    case Objective::cost_under_deadline:
    case Objective::throughput_per_dollar:
      return "cheaper";
    case Objective::time:
      return "faster";
    case Objective::cost_time:
    case Objective::p95_cost:
    case Objective::p95_time:
      return "better";
  }
  return "";
}

/// "; an hour of p4d.24xlarge on spot in us-east-1 (aws) then costs 14.20 USD (now 11.57)": what a
/// factor on the price of the chosen nodes makes of it; "" of other numbers.
std::string price_at(const Answer& a, const Flip& flip) {
  if (!planner::is_price(flip.lever)) return "";
  const Forecast& f = a.plans.front().result.forecast;
  const PriceForecast* dearest = nullptr;  // of all that it pays for
  for (const PriceForecast& p : f.prices)
    if (dearest == nullptr || p.usd > dearest->usd) dearest = &p;
  if (dearest == nullptr || dearest->usd <= 0) return "";
  const auto hour = [](double usd) { return fmt::format("{:.2f}", in_printed_currency(usd)); };
  return fmt::format(" (an hour of {} at {} {}, now {})", dearest->what,
                     hour(dearest->usd_per_hour * flip.factor), printed_currency().code,
                     hour(dearest->usd_per_hour));
}

std::string flip_text(const Answer& a, const Flip& flip) {
  const RankedPlan& chosen = a.plans.front();
  const std::string at = fmt::format("{} {}{}", lever_text(flip.lever, chosen),
                                     text_of_factor(flip.factor), price_at(a, flip));
  if (flip.limit.empty())
    return fmt::format("{}: {} is {}", at, told_apart(*flip.rival, chosen),
                       better_word(a.objective));
  return fmt::format("{}: it misses the {}, and {}", at, flip.limit,
                     flip.rival ? told_apart(*flip.rival, chosen) + " takes its place"
                                : "no other plan meets all limits");
}

std::string amount_of_metric(const Answer& a, double value) {
  return a.objective == Objective::time ? format_duration(Seconds{value}) : usd_value(value);
}

std::string what_is_done(const Measurement& m) {
  const std::string nodes = m.nodes == 1 ? "one node" : fmt::format("{} nodes", m.nodes);
  const std::string machine = planner::hardware_text(m.on.hardware, m.nodes);
  switch (m.kind) {
    case MeasurementKind::trial:
      return fmt::format("{} of a trial on one node ({})", format_duration(m.takes), machine);
    case MeasurementKind::steps:
      return fmt::format("{} for 50 steps of it on {} ({})", format_duration(m.takes), nodes,
                         machine);
    case MeasurementKind::network:
      return fmt::format("{} of all-reduces between two nodes ({})", format_duration(m.takes),
                         machine);
    case MeasurementKind::start:
      return fmt::format("{} to start one node ({})", format_duration(m.takes), machine);
    case MeasurementKind::storage:
      return fmt::format("{} to save and restore a checkpoint on one node ({})",
                         format_duration(m.takes), machine);
    case MeasurementKind::reclaims:
      return fmt::format("{} of watching a spot node ({})", format_duration(m.takes), machine);
  }
  return "";
}

bool pays(const Answer& a, const Measurement& m) {
  return a.objective == Objective::time || !m.costs || m.worth > m.costs->v;
}

std::string measurement_text(const Answer& a, const Measurement& m) {
  const std::string price = m.costs ? usd_value(m.costs->v) : "price unknown";
  std::string text = fmt::format(
      "{}, {}: with {} probability it shows that {} saves {}; expected saving {}", what_is_done(m),
      price, format_percent(m.share), told_apart(*m.instead, a.plans.front()),
      amount_of_metric(a, m.saves), amount_of_metric(a, m.worth));
  if (!pays(a, m)) text += ", which is less than it costs";
  text += ". It measures ";
  const std::size_t shown = std::min(kRevealedShown, m.reveals.size());
  for (std::size_t k = 0; k < shown; ++k) text += (k == 0 ? "" : "; ") + m.reveals[k];
  if (m.reveals.size() > shown) text += fmt::format("; {} more", m.reveals.size() - shown);
  return text + ".";
}

}  // namespace

std::string told_apart(const RankedPlan& plan, const RankedPlan& from) {
  const std::string place = place_text(plan);
  const bool same = place == place_text(from);
  return same ? planner::strategy_text(plan.split) + " on the same" : place;
}

std::string command_for(const Answer& a, const Measurement& m) {
  const RankedPlan& chosen = a.plans.front();
  const bool own = planner::same_changes(m.on.result.changes, chosen.result.changes);
  if (m.kind == MeasurementKind::storage) return "reckon probe --checkpoint-dir DIR";
  const bool written = own && !a.words.plan_file.empty();
  if (a.file.empty() && !written) return "";
  std::string plan = shell_file(written ? a.words.plan_file : a.file);
  if (!written) plan += a.words.file_options;
  if (!written)
    for (const std::string& change : planner::texts(m.on.result.changes))
      plan += " --set " + shell_word(change);
  plan += a.words.catalog_options;
  switch (m.kind) {
    case MeasurementKind::trial:
      return fmt::format("reckon trial {} --like-pool", plan);
    case MeasurementKind::steps:
      return fmt::format("reckon calibrate LOG --scenario {}", plan);
    case MeasurementKind::network:
      return fmt::format("all_reduce_perf > nccl.txt; reckon calibrate nccl.txt --scenario {}",
                         plan);
    case MeasurementKind::start:
    case MeasurementKind::reclaims:
      return fmt::format("reckon calibrate WAITS.csv --scenario {}", plan);
    case MeasurementKind::storage:
      break;
  }
  return "";
}

std::vector<std::string> changes_of_choice(const Answer& a) {
  std::vector<std::string> out;
  if (!a.sensitivity || a.plans.empty()) return out;
  const planner::Sensitivity& s = *a.sensitivity;
  const bool alone = s.rivals + s.ties.size() + s.better.size() == 0;
  if (alone && std::ranges::none_of(s.levers, [](const auto& l) { return l.up || l.down; }))
    return {"Nothing: there is no other plan."};
  std::vector<std::string> still;
  for (const planner::LeverFlips& l : s.levers) {
    for (const auto& flip : {l.up, l.down})
      if (flip) out.push_back(flip_text(a, *flip) + ".");
    if (!l.up && !l.down) still.push_back(lever_text(l.lever, a.plans.front()));
  }
  // Of those that were dropped it would not be true.
  if (!still.empty() && s.ties.empty() && s.better.empty())
    out.push_back(
        fmt::format("Insensitive ({} times): {}.", factors_tried(), fmt::join(still, "; ")));
  for (const RankedPlan& better : s.better)
    out.push_back(fmt::format("Better, but not simulated by the search: {}.",
                              told_apart(better, a.plans.front())));
  for (const RankedPlan& tie : s.ties)
    out.push_back(fmt::format("No difference within {} replications: {}.",
                              format_count(s.replications), told_apart(tie, a.plans.front())));
  out.push_back(
      fmt::format("By bisection over forecasts of {} replications, against {} other plan{}.",
                  format_count(s.replications), s.rivals, s.rivals == 1 ? "" : "s"));
  return out;
}

std::vector<Advice> advice_of(const Answer& a) {
  if (a.plans.empty() || a.rivals.empty() || !planner::can_be_worth(a.objective)) return {};
  if (a.measurements.empty())
    return {{a.replications < 100
                 ? "Not computed: needs 100 replications or more."
                 : "Nothing: no measurement that reckon knows would change the choice.",
             ""}};
  std::vector<Advice> out;
  for (const Measurement& m : a.measurements) {
    if (out.size() == kMeasurementsShown || (!out.empty() && !pays(a, m))) break;
    Advice advice{measurement_text(a, m), command_for(a, m)};
    // Of two layouts of one machine the same may be said.
    if (std::ranges::none_of(out, [&](const Advice& o) { return o.text == advice.text; }))
      out.push_back(std::move(advice));
  }
  return out;
}

std::string next_text(const Answer& a) {
  const planner::CommandWords& words = a.words;
  if (words.plan_command.empty()) return "";
  if (words.plan_file.empty())
    return fmt::format("\nNext\n  {} --out best.yaml\n", words.plan_command);
  const std::string file = shell_file(words.plan_file);
  // reckon-worker does not train on TPUs: the export says what a program of one's own needs.
  const bool on_tpus = !a.plans.empty() && !a.plans.front().hardware.slice.empty();
  const std::string start =
      on_tpus ? fmt::format("reckon export kubernetes {}", file)
              : fmt::format("reckon run {} --on kubernetes --image IMAGE --dry-run", file);
  return fmt::format("\nNext\n  {}\n  reckon simulate {}\n", start, file);
}

std::string sensitivity_text(const Answer& a, int width) {
  const auto sentences = changes_of_choice(a);
  if (sentences.empty()) return "";
  std::string out = "\nWhat would change the choice\n";
  for (const std::string& sentence : sentences) add_lines(out, "  ", sentence, width);
  return out;
}

std::string measurements_text(const Answer& a, int width) {
  const auto advice = advice_of(a);
  if (advice.empty()) return "";
  std::string out = "\nWhat to measure first\n";
  for (const Advice& one : advice) {
    add_lines(out, "  ", one.text, width);
    if (!one.command.empty()) out += "    " + one.command + "\n";
  }
  return out;
}

}  // namespace reckon
