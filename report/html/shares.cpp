#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "report/html/charts.h"
#include "report/html/colors.h"
#include "report/table.h"
#include "sim/base/printed_currency.h"
#include "sim/base/unit_text.h"

namespace reckon::html {
namespace {

constexpr double kNoise = 0.0005;  // a share that would be printed as 0.0 % is not drawn

std::string words(std::string_view name) {
  std::string text(name);
  std::replace(text.begin(), text.end(), '_', ' ');
  return text;
}

std::string percent(double share) { return fmt::format("{:.1f} %", 100 * share); }

/// "Where the money goes: accelerators 295 USD (77.9 %), ...".
std::string description_of(const std::string& title, const std::vector<BarRow>& rows) {
  std::string out = title + ": ";
  for (std::size_t k = 0; k < rows.size(); ++k)
    out += (k == 0 ? "" : ", ") + rows[k].name + " " + rows[k].value;
  return out;
}

Table table_of(const std::string& what, const std::string& value, const std::vector<BarRow>& rows) {
  Table table{{what, value}, {}};
  for (const BarRow& r : rows) table.rows.push_back({r.name, r.value});
  return table;
}

Chart rows_chart(std::string id, std::string title, const std::vector<BarRow>& rows,
                 const BarScale& scale) {
  Chart chart{std::move(id), std::move(title), "", {}, {}, {}};
  chart.spec = bar_rows(description_of(chart.title, rows), rows, scale);
  return chart;
}

}  // namespace

std::optional<Chart> cost_parts(const Forecast& f) {
  if (!f.cost_usd || !(f.cost_usd->mean > 0)) return std::nullopt;
  std::vector<BarRow> rows;
  Table table{{"part", "mean", "share"}, {}};
  for (std::size_t p = 0; p < kCostParts; ++p) {
    const double usd = f.cost_breakdown_usd[p];
    const std::string name(to_text(CostPart(p)));
    table.rows.push_back({name, format_usd(Usd{usd}), percent(usd / f.cost_usd->mean)});
    if (usd / f.cost_usd->mean < kNoise) continue;
    rows.push_back(
        {name, fmt::format("{}  ({})", format_usd(Usd{usd}), percent(usd / f.cost_usd->mean)), 0,
         in_printed_currency(usd), CostPart(p) == CostPart::idle ? "var(--warm)" : "var(--main)"});
  }
  table.rows.push_back({"all", format_usd(Usd{f.cost_usd->mean}), "100.0 %"});
  Chart chart = rows_chart("ledger", "Where the money goes", rows,
                           {printed_currency().code + ", mean", 0, {}, {}});
  chart.note =
      fmt::format("Mean {}{}. Idle is what nodes cost while no part of the job is on them.",
                  format_usd(Usd{f.cost_usd->mean}),
                  f.prices_as_of.empty() ? "" : ", prices as of " + f.prices_as_of);
  chart.numbers = std::move(table);
  return chart;
}

Chart node_hours(const Forecast& f) {
  std::vector<BarRow> rows;
  for (const auto& [pool, hours] : f.node_hours)
    rows.push_back({"nodes of " + pool, format_count(hours) + " node-hours", 0, hours});
  Chart chart =
      rows_chart("node-hours", "How long nodes are paid", rows, {"node-hours, mean", 0, {}, {}});
  chart.numbers = table_of("pool", "node-hours, mean", rows);
  return chart;
}

Chart goodput_waterfall(const Forecast& f) {
  std::vector<BarRow> rows{{"all accelerator time", "100.0 %", 0, 100, "var(--mist)"}};
  Table table{{"what the accelerators do", "share of their time"},
              {{"training (goodput)", percent(f.goodput.mean)}}};
  double left = 1;
  for (std::size_t c = 0; c < kBadputCauses; ++c) {
    const std::string name = words(to_text(Badput(c)));
    table.rows.push_back({name, percent(f.badput[c])});
    if (f.badput[c] >= kNoise)
      rows.push_back({name, "-" + percent(f.badput[c]), 100 * (left - f.badput[c]), 100 * left,
                      color_of(Badput(c))});
    left -= f.badput[c];
  }
  rows.push_back(
      {"training (goodput)", percent(f.goodput.mean), 0, 100 * f.goodput.mean, kTrainingColor});
  // Where little is lost the bars would be slivers: the axis then starts near the goodput, and says
  // so.
  const double lost = 1 - f.goodput.mean;
  const double start = lost < 0.25 ? std::max(0.0, std::floor(100 - 150 * lost)) : 0;
  std::string axis = "% of accelerator time";
  if (start > 0) axis += fmt::format("; the axis starts at {:.0f} %", start);
  Chart chart =
      rows_chart("goodput", "Where the accelerators' time goes", rows, {axis, start, 100.0, {}});
  chart.note = "Mean share of the time of all accelerators, from the submit to the last step.";
  chart.numbers = std::move(table);
  return chart;
}

Chart step_parts(const Forecast& f) {
  const StepEstimate& s = f.step;
  const double whole = s.step.count();
  const double unit = whole < 1e-3 ? 1e-6 : whole < 1 ? 1e-3 : 1;
  const char* axis = whole < 1e-3 ? "us of a step" : whole < 1 ? "ms of a step" : "s of a step";
  std::vector<BarRow> rows;
  Table table{{"part", "time", "share"}, {}};
  double from = 0;
  const auto part = [&](const char* name, Seconds t, const char* color) {
    if (!(t.count() > 0)) return;
    const double to = from + t.count();
    rows.push_back({name, fmt::format("{}  ({})", format_duration(t), percent(t.count() / whole)),
                    from / unit, to / unit, color});
    table.rows.push_back({name, format_duration(t), percent(t.count() / whole)});
    from = to;
  };
  part("compute", s.compute, kTrainingColor);
  part("weight update", s.update, "var(--leaf)");
  part("exposed communication", s.exposed_communication, "var(--warm)");
  part("waiting for input", s.exposed_input, "var(--sand)");
  part("pipeline bubble", s.bubble, "var(--mist)");
  part("framework between steps", s.host, "var(--slate)");
  Chart chart = rows_chart("step", fmt::format("One step: {}", format_duration(s.step)), rows,
                           {axis, 0, {}, {}});
  chart.note = fmt::format(
      "Bound by {}. {}. What is hidden behind compute is not "
      "drawn: communication takes {} in all, input {}.",
      to_text(s.bottleneck), throughput_text(s, f.accelerators, f.tokens_per_sample),
      format_duration(s.communication), format_duration(s.input));
  chart.numbers = std::move(table);
  return chart;
}

Chart memory_parts(const Forecast& f) {
  const MemoryEstimate& m = f.memory;
  constexpr double kGiB = 1073741824.0;
  std::vector<BarRow> rows;
  double from = 0;
  const auto part = [&](const char* name, Bytes b, const char* color) {
    if (!(b.v > 0)) return;
    rows.push_back({name, format_bytes(b), from / kGiB, (from + b.v) / kGiB, color});
    from += b.v;
  };
  part("parameters", m.parameters, kTrainingColor);
  part("gradients", m.gradients, "var(--second)");
  part("optimizer state", m.optimizer, "var(--leaf)");
  part("activations", m.activations, "var(--warm)");
  part("workspace", m.workspace, "var(--plum)");
  part("gathered parameters and gradients", m.gathered, "var(--sand)");
  part("comparable runs", m.evidence, "var(--sand)");
  part("fragmentation", m.fragmentation, "var(--mist)");
  part("framework", m.reserve, "var(--mist)");
  // Room beside the line of what there is, for the values.
  const double high = 1.2 * std::max(m.required().v, m.available.v) / kGiB;
  Chart chart =
      rows_chart("memory", "Memory of an accelerator", rows,
                 {"GiB; the dashed line is what there is", 0, high, m.available.v / kGiB});
  chart.note =
      fmt::format("{} are needed, {} are there: P(out of memory) {}.", format_bytes(m.required()),
                  format_bytes(m.available), probability_text(m.out_of_memory()));
  chart.numbers = table_of("part", "bytes", rows);
  return chart;
}

}  // namespace reckon::html
