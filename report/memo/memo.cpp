#include "report/memo/memo.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/memo/parts.h"
#include "report/table.h"
#include "sim/base/unit_text.h"

namespace reckon {
namespace {

constexpr std::size_t kAlternativesShown = 12;
constexpr double kNoShare = 0.0005;  // a share that would be printed as 0.0 % is not printed

std::string memo_answer(const MemoInputs& m) {
  const Forecast& f = m.forecast;
  std::string out = "## Answer\n\n";
  if (!f.feasible)
    return out + fmt::format("**The plan does not fit**: accelerator memory is {}.\n\n",
                             memory_text(f.memory));
  out += fmt::format("**{}**, **{}** (median; in brackets the 5th to the 95th percentile).\n\n",
                     time_range(f.time_seconds), memo_cost(f));
  out += fmt::format("On {}. {} of the accelerators' time is training ({} steps, bound by {}).\n\n",
                     markdown_safe(hardware_text(m.plan)), format_percent(f.goodput.mean),
                     format_count(double(f.steps)), to_text(f.step.bottleneck));
  out += fmt::format("Memory of an accelerator: {}.\n\n", memory_text(f.memory));
  if (f.cost_usd) {
    std::vector<std::string> parts;
    for (std::size_t p = 0; p < kCostParts; ++p)
      if (f.cost_breakdown_usd[p] >= kNoShare * f.cost_usd->mean)
        parts.push_back(
            fmt::format("{} {}", to_text(CostPart(p)), format_usd(Usd{f.cost_breakdown_usd[p]})));
    out += fmt::format("Mean cost by part: {}.\n\n", fmt::join(parts, ", "));
  }
  return out;
}

std::string expectations(const MemoInputs& m) {
  if (m.plan.expect.empty()) return "";
  std::string out = "## What was asked of it\n\n" + markdown_header({"condition", "holds"});
  for (const Expectation& e : m.plan.expect) {
    const bool of_serving = m.serving != nullptr && is_of_serving(e.metric);
    const ExpectationResult r = of_serving ? evaluate(e, *m.serving) : evaluate(e, m.forecast);
    out += markdown_row({markdown_code(e.text), r.passed ? "yes"
                                                : r.reason.empty()
                                                    ? "**no**"
                                                    : "**no**: " + markdown_safe(r.reason)});
  }
  return out + "\n";
}

std::string memo_alternatives(const MemoInputs& m) {
  std::string out = "## Alternatives tried\n\n";
  if (m.alternatives == nullptr)
    return out + "None in this run; `reckon simulate --sweep` and `reckon compare` try others.\n\n";
  const Sweep& sweep = *m.alternatives;
  std::vector<std::string> names;
  for (const std::string& path : sweep.paths) names.push_back(markdown_code(path));
  for (const char* name : {"time", "cost", ""}) names.emplace_back(name);
  out += markdown_header(names);
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
    for (const std::string& value : point.values) cells.push_back(markdown_safe(value));
    if (point.forecast) {
      cells.push_back(time_range(point.forecast->time_seconds));
      cells.push_back(memo_cost(*point.forecast));
      cells.push_back(first == k ? (least == k ? "fastest, cheapest" : "fastest")
                                 : (least == k ? "cheapest" : ""));
    } else {
      cells.insert(cells.end(), {"not possible", "", markdown_safe(point.reason)});
    }
    out += markdown_row(cells);
  }
  if (left_out > 0) out += fmt::format("\n{} more are in the sweep's table.\n", left_out);
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
  return fmt::format("{} {}{}: {}", to_text(plan.provider), to_text(plan.service.id), place,
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
    if (begin > 1 && line.starts_with("reckon ")) continue;  // a command, indented
    question += (question.empty() ? "" : " ") + std::string(line);
  }
  constexpr std::string_view kLead = "Question: ";
  return question.starts_with(kLead) ? question.substr(kLead.size()) : question;
}

std::string memo_markdown(const MemoInputs& m) {
  const Forecast& f = m.forecast;
  std::string out = fmt::format("# {}\n\n", markdown_safe(f.scenario));
  if (!m.question.empty()) out += fmt::format("## Question\n\n{}\n\n", markdown_safe(m.question));
  out += memo_answer(m) + expectations(m) + memo_alternatives(m) + memo_risks(m.forecast);
  if (f.feasible) out += memo_assumptions(f);
  out += memo_prices(m.plan, m.forecast);
  return out + memo_provenance(f);
}

}  // namespace reckon
