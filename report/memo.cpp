#include "report/memo.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/table.h"
#include "sim/base/unit_text.h"

namespace reckon {
namespace {

constexpr std::size_t kAssumptionsShown = 5;
constexpr std::size_t kAlternativesShown = 12;
constexpr double kNoise = 0.0005;  // a share that would be printed as 0.0 % is not printed

/// Text of users inside Markdown: what would end a table's cell or begin markup is escaped.
std::string safe(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\n' || c == '\r') {
      out += ' ';
      continue;
    }
    if (std::string_view("|\\`*_<>[]").find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out;
}

std::string code(std::string_view text) {  // in a code span only the backtick is special
  std::string out(text);
  std::replace(out.begin(), out.end(), '`', '\'');
  return "`" + out + "`";
}

std::string row(const std::vector<std::string>& cells) {
  return fmt::format("| {} |\n", fmt::join(cells, " | "));
}

std::string header(const std::vector<std::string>& cells) {
  std::string line = row(cells) + "|";
  for (std::size_t k = 0; k < cells.size(); ++k) line += "---|";
  return line + "\n";
}

std::string cost_text(const Forecast& f) {
  return f.cost_usd ? usd_range(*f.cost_usd) : "unknown (a price is missing)";
}

std::string answer(const MemoInputs& m) {
  const Forecast& f = m.forecast;
  std::string out = "## Answer\n\n";
  if (!f.feasible)
    return out + fmt::format(
                     "**It cannot be done so**: an accelerator needs {} of memory and has "
                     "{}.\n\n",
                     format_bytes(f.memory.required()), format_bytes(f.memory.available));
  out += fmt::format("**{}**, **{}** (median; in brackets the 5th to the 95th percentile).\n\n",
                     time_range(f.time_seconds), cost_text(f));
  out += fmt::format("On {}. {} of the accelerators' time is training ({} steps, bound by {}).\n\n",
                     safe(hardware_text(m.plan)), format_percent(f.goodput.mean),
                     format_count(double(f.steps)), to_text(f.step.bottleneck));
  if (f.cost_usd) {
    std::vector<std::string> parts;
    for (std::size_t p = 0; p < kCostParts; ++p)
      if (f.cost_breakdown_usd[p] >= kNoise * f.cost_usd->mean)
        parts.push_back(
            fmt::format("{} {}", to_text(CostPart(p)), format_usd(Usd{f.cost_breakdown_usd[p]})));
    out += fmt::format("Mean cost by part: {}.\n\n", fmt::join(parts, ", "));
  }
  return out;
}

std::string expectations(const MemoInputs& m) {
  if (m.plan.expect.empty()) return "";
  std::string out = "## What was asked of it\n\n" + header({"condition", "holds"});
  for (const Expectation& e : m.plan.expect) {
    const ExpectationResult r = evaluate(e, m.forecast);
    out += row({code(e.text), r.passed           ? "yes"
                              : r.reason.empty() ? "**no**"
                                                 : "**no**: " + safe(r.reason)});
  }
  return out + "\n";
}

std::string alternatives(const MemoInputs& m) {
  std::string out = "## Alternatives tried\n\n";
  if (m.alternatives == nullptr)
    return out + "None in this run; `reckon simulate --sweep` and `reckon compare` try others.\n\n";
  const Sweep& sweep = *m.alternatives;
  std::vector<std::string> names;
  for (const std::string& path : sweep.paths) names.push_back(code(path));
  for (const char* name : {"time", "cost", ""}) names.emplace_back(name);
  out += header(names);
  const auto first = fastest(sweep), least = cheapest(sweep);
  std::size_t left_out = 0;
  for (std::size_t k = 0; k < sweep.points.size(); ++k) {
    const SweepPoint& point = sweep.points[k];
    const bool best = first == k || least == k;
    if (k >= kAlternativesShown && !best) {
      ++left_out;
      continue;
    }
    std::vector<std::string> cells;
    for (const std::string& value : point.values) cells.push_back(safe(value));
    if (point.forecast) {
      cells.push_back(time_range(point.forecast->time_seconds));
      cells.push_back(cost_text(*point.forecast));
      cells.push_back(first == k ? (least == k ? "fastest, cheapest" : "fastest")
                                 : (least == k ? "cheapest" : ""));
    } else {
      cells.insert(cells.end(), {"not possible", "", safe(point.reason)});
    }
    out += row(cells);
  }
  if (left_out > 0) out += fmt::format("\n{} more are in the sweep's table.\n", left_out);
  return out + "\n";
}

std::string risks(const MemoInputs& m) {
  const Forecast& f = m.forecast;
  std::string out = "## Risks\n\n";
  if (f.feasible) {
    if (f.unfinished_share > 0)
      out += fmt::format("- In {} of the simulated runs the training never finishes: {}.\n",
                         format_percent(f.unfinished_share), safe(f.unfinished_reason));
    const double late = f.time_seconds.p95 - f.time_seconds.p50;
    if (std::isfinite(late)) {
      out += fmt::format("- One run in twenty takes at least {} more than the median",
                         format_duration(Seconds{late}));
      out += f.cost_usd ? fmt::format("; one in twenty costs at least {} more.\n",
                                      format_usd(Usd{f.cost_usd->p95 - f.cost_usd->p50}))
                        : ".\n";
    }
    std::vector<std::string> causes;
    for (std::size_t c = 0; c < kInterruptionCauses; ++c)
      if (f.interruptions[c] >= 0.005)
        causes.push_back(fmt::format("{:.2f} by {}", f.interruptions[c], to_text(Interruption(c))));
    if (!causes.empty())
      out += fmt::format(
          "- Interruptions of a mean run: {}; {} of accelerator time is lost work.\n",
          fmt::join(causes, ", "), format_percent(f.badput[std::size_t(Badput::lost_work)]));
    if (f.extrapolated)
      out += "- No measurement of this accelerator is behind the forecast, only of its kind.\n";
  }
  for (const std::string& warning : f.warnings) out += "- " + safe(warning) + ".\n";
  return out + "\n";
}

std::string assumptions(const Forecast& f) {
  if (f.assumptions.empty()) return "";
  std::string out = fmt::format(
      "## What it rests on\n\nThe {} of {} assumptions that move the answer most, from their low "
      "to their high end:\n\n",
      std::min(kAssumptionsShown, f.assumptions.size()), f.assumptions.size());
  out += header({"assumption", "value (range)", "cost", "time", "source"});
  for (std::size_t k = 0; k < std::min(kAssumptionsShown, f.assumptions.size()); ++k) {
    const AssumptionEffect& a = f.assumptions[k];
    out += row({safe(a.what), safe(a.value),
                a.cost_effect_usd ? signed_usd(*a.cost_effect_usd) : "unknown",
                signed_duration(a.time_effect_seconds), safe(a.source)});
  }
  return out + "\n";
}

std::string prices(const Plan& plan) {
  std::string out = "## Prices\n\n" + header({"pool", "a node's hour", "source", "as of"});
  for (const PlannedPool& p : plan.pools) {
    const double usd =
        double(p.price.machine.nano_usd_per_hour + p.price.accelerators.nano_usd_per_hour) * 1e-9;
    out += row({safe(p.name), p.price.known ? format_usd(Usd{usd}) : "unknown",
                safe(p.price.source), p.price.as_of});
  }
  return out + "\n";
}

}  // namespace

std::string hardware_text(const Plan& plan) {
  std::vector<std::string> pools;
  for (const PlannedPool& p : plan.pools) {
    std::string text = p.nodes_min == p.nodes_max
                           ? fmt::format("{} x {}", p.nodes_initial, p.machine.name)
                           : fmt::format("{} to {} x {}", p.nodes_min, p.nodes_max, p.machine.name);
    if (p.slice)
      text = fmt::format("{} x {}", p.nodes_initial, p.slice->name);
    else if (p.accelerator)
      text += fmt::format(" with {} {} each", p.accelerators_per_node, p.accelerator->name);
    pools.push_back(fmt::format("{} ({})", text, to_text(p.pricing)));
  }
  const std::string place = plan.region.empty() ? "" : " in " + plan.region;
  return fmt::format("{} {}{}: {}", to_text(plan.provider), to_text(plan.service), place,
                     fmt::join(pools, "; "));
}

std::string question_of(std::string_view text) {
  std::string question;
  while (text.starts_with('#')) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(1, end - 1);
    text.remove_prefix(std::min(end + 1, text.size()));
    const std::size_t begin = line.find_first_not_of(" \t\r");
    if (begin == std::string_view::npos) break;  // the paragraph ends
    line = line.substr(begin, line.find_last_not_of(" \t\r") + 1 - begin);
    question += (question.empty() ? "" : " ") + std::string(line);
  }
  constexpr std::string_view kLead = "Question: ";
  return question.starts_with(kLead) ? question.substr(kLead.size()) : question;
}

std::string memo_markdown(const MemoInputs& m) {
  const Forecast& f = m.forecast;
  std::string out = fmt::format("# {}\n\n", safe(f.scenario));
  if (!m.question.empty()) out += fmt::format("## Question\n\n{}\n\n", safe(m.question));
  out += answer(m) + expectations(m) + alternatives(m) + risks(m);
  if (f.feasible) out += assumptions(f);
  out += prices(m.plan);
  const std::string digest = f.catalog_digest.empty() ? "" : ", catalog " + f.catalog_digest;
  for (const std::string& calibration : f.calibrations)
    out += fmt::format("Calibrated by {}.\n\n", safe(calibration));
  return out + fmt::format("{} simulated runs, seed {}, network engine {}{}.\n",
                           format_count(f.replications), f.seed, f.engine, digest);
}

}  // namespace reckon
