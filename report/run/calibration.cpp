#include "report/run/calibration.h"

#include <fmt/format.h>

#include "report/json_parts.h"
#include "report/table.h"
#include "report/text.h"
#include "sim/base/unit_text.h"
#include "sim/forecast/effects.h"

namespace reckon {
namespace {

std::string parameter_range(const ParameterValue& v, const std::string& unit) {
  return fmt::format("{} ({} .. {})", format_in_unit(v.value, unit), format_in_unit(v.low, unit),
                     format_in_unit(v.high, unit));
}

std::string percent_changed(double ratio) { return fmt::format("{:+.1f} %", 100 * (ratio - 1)); }

/// "-": it was 0.
std::string changed(double now, double before) {
  return before > 0 ? percent_changed(now / before) : "-";
}

Json json_of_value(const ParameterValue& v) {
  return {{"value", number(v.value)}, {"low", number(v.low)}, {"high", number(v.high)}};
}

std::string held_out(const HeldOut& h) {
  if (h.rows == 0) return fmt::format("\nHeld out: {}\n", h.how);
  return fmt::format("\nHeld out: {}; mean error of a step {:.1f} % before, {:.1f} % after{}\n",
                     h.how, 100 * h.error_before, 100 * h.error_after, h.worse ? ": worse" : "");
}

std::string waiting(const Calibration& c) {
  if (c.waiting_times.empty()) return "";
  Columns table;
  table.row({"", "seen", "cut off", "5 %", "median", "95 %", "law"});
  for (const WaitingTimes& w : c.waiting_times)
    table.row({w.what, std::to_string(w.observed), std::to_string(w.censored),
               format_in_unit(w.p5, "s"), format_in_unit(w.p50, "s"), format_in_unit(w.p95, "s"),
               w.families.empty() ? "-" : w.families.front().family});
  return "\nWaiting times\n" + table.text();
}

std::string own_runs_text(const Calibration& c) {
  if (c.own_runs.empty()) return "";
  Columns table;
  table.row({"", "on", "step", "the model's", "over it", "noise", "steps"});
  for (const OwnRow& r : c.own_runs)
    table.row({r.id, fmt::format("{} x {}", r.accelerators, r.accelerator),
               format_in_unit(r.step_seconds, "s"), format_in_unit(r.modelled_seconds, "s"),
               fmt::format("{:.2f}", r.step_seconds / r.modelled_seconds),
               format_percent(std::expm1(r.noise)), std::to_string(r.steps)});
  return "\nRuns of one's own, evidence beside the published ones (source: own)\n" + table.text();
}

std::string own_data_text(const Calibration& c) {
  if (c.own_data.empty()) return "";
  std::string text = "\nFor the scenario: what was measured of its data (workload.dataset)\n";
  for (const OwnData& d : c.own_data) text += fmt::format("  {}: {}\n", d.name, to_text(d));
  return text;
}

}  // namespace

std::string calibration_table(const Calibration& c, int width) {
  std::string out = "Corrections (median, 5th to 95th percentile)\n";
  Columns corrections;
  corrections.row({"", "catalog", "calibrated", "by"});
  for (const Correction& x : c.corrections)
    corrections.row({x.parameter, parameter_range(x.catalog, x.unit),
                     parameter_range(x.calibrated, x.unit),
                     changed(x.calibrated.value, x.catalog.value)});
  out += c.corrections.empty() ? "  none\n" : corrections.text();
  Columns rows;
  rows.row({"", "measured", "before", "after", "error before", "after"});
  for (const CalibratedRow& r : c.rows)
    rows.row({r.name, format_in_unit(r.measured, r.unit), format_in_unit(r.before, r.unit),
              format_in_unit(r.after, r.unit), percent_changed(r.before / r.measured),
              percent_changed(r.after / r.measured)});
  if (!c.rows.empty()) out += "\nForecasts of what was measured\n" + rows.text();
  out += own_data_text(c) + own_runs_text(c) + waiting(c) + held_out(c.held_out);
  if (!c.warnings.empty()) out += "\nWarnings\n";
  for (const std::string& warning : c.warnings) {
    const char* lead = "  - ";
    for (const std::string& line : wrap(warning, width - 4)) {
      out += lead + line + '\n';
      lead = "    ";
    }
  }
  return out;
}

std::string calibration_json(const Calibration& c, std::span<const ProfiledFile> profiles) {
  Json out = head("calibrate");
  out["catalog_digest"] = c.catalog_digest;
  out["measurements"] = c.measurements;
  out["corrections"] = Json::array();
  for (const Correction& x : c.corrections)
    out["corrections"].push_back({{"parameter", x.parameter},
                                  {"unit", x.unit},
                                  {"catalog", json_of_value(x.catalog)},
                                  {"calibrated", json_of_value(x.calibrated)},
                                  {"standard_error_of_log", number(x.standard_error)},
                                  {"rows", x.rows}});
  out["rows"] = Json::array();
  for (const CalibratedRow& r : c.rows)
    out["rows"].push_back({{"name", r.name},
                           {"unit", r.unit},
                           {"measured", number(r.measured)},
                           {"before", number(r.before)},
                           {"after", number(r.after)},
                           {"values", r.values}});
  out["own_runs"] = Json::array();
  for (const OwnRow& r : c.own_runs)
    out["own_runs"].push_back({{"id", r.id},
                               {"source", kOwnSource},
                               {"accelerator", r.accelerator},
                               {"accelerators", r.accelerators},
                               {"step_seconds", number(r.step_seconds)},
                               {"modelled_step_seconds", number(r.modelled_seconds)},
                               {"standard_error_of_log", number(r.noise)},
                               {"steps", r.steps}});
  out["own_data"] = Json::array();
  for (const OwnData& d : c.own_data)
    out["own_data"].push_back({{"name", d.name},
                               {"samples", number(d.samples)},
                               {"bytes_per_sample", number(d.bytes)},
                               {"decode_cpu_seconds", number(d.decode_seconds)},
                               {"dataset", to_text(d)}});
  out["waiting_times"] = Json::array();
  for (const WaitingTimes& w : c.waiting_times) {
    Json families = Json::array();
    for (const FamilyFit& f : w.families)
      families.push_back({{"family", f.family},
                          {"scale", number(f.scale)},
                          {"shape", number(f.shape)},
                          {"aic", number(f.aic)},
                          {"bic", number(f.bic)}});
    out["waiting_times"].push_back({{"what", w.what},
                                    {"observed", w.observed},
                                    {"censored", w.censored},
                                    {"mean_seconds", number(w.mean)},
                                    {"p5_seconds", number(w.p5)},
                                    {"p50_seconds", number(w.p50)},
                                    {"p95_seconds", number(w.p95)},
                                    {"families", std::move(families)}});
  }
  out["held_out"] = {{"how", c.held_out.how},
                     {"rows", c.held_out.rows},
                     {"error_before", number(c.held_out.error_before)},
                     {"error_after", number(c.held_out.error_after)},
                     {"worse", c.held_out.worse}};
  if (!profiles.empty()) out["profiles"] = profiles_array(profiles);
  out["warnings"] = c.warnings;
  return dump(out, 2);
}

}  // namespace reckon
