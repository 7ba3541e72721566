#include "report/memo/parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/explain/evidence.h"
#include "report/notice.h"
#include "report/table.h"
#include "report/text.h"
#include "sim/base/text/printable.h"
#include "sim/base/unit_text.h"

namespace reckon {
namespace {

constexpr std::size_t kAssumptionsInMemo = 5;

}  // namespace

std::string markdown_safe(std::string_view text) {
  std::string out;
  for (const char c : printable(text)) {
    if (std::string_view("|\\`*_<>[]").find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out;
}

std::string markdown_code(std::string_view text) {
  const std::string out = printable(text);
  std::size_t run = 0, longest = 0;
  for (const char c : out) {
    run = c == '`' ? run + 1 : 0;
    longest = std::max(longest, run);
  }
  if (longest == 0) return "`" + out + "`";
  const std::string fence(longest + 1, '`');
  return fence + " " + out + " " + fence;
}

std::string markdown_row(const std::vector<std::string>& cells) {
  return fmt::format("| {} |\n", fmt::join(cells, " | "));
}

std::string markdown_header(const std::vector<std::string>& cells) {
  std::string line = markdown_row(cells) + "|";
  for (std::size_t k = 0; k < cells.size(); ++k) line += "---|";
  return line + "\n";
}

std::string memo_cost(const Forecast& f) {
  return f.cost_usd ? usd_range(*f.cost_usd) : "unknown (a price is missing)";
}

std::string memo_risks(const Forecast& f) {
  std::string out = "## Risks\n\n";
  if (f.feasible) {
    if (f.unfinished_share > 0)
      out += fmt::format("- In {} of the simulated runs the training never finishes: {}.\n",
                         format_percent(f.unfinished_share), markdown_safe(f.unfinished_reason));
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
      out +=
          "- The accelerator's speed at this precision is an estimate: no measurement supports "
          "it.\n";
  }
  for (const std::string& warning : f.warnings) out += "- " + markdown_safe(warning) + ".\n";
  return out + "\n";
}

std::string memo_assumptions(const Forecast& f) {
  if (f.assumptions.empty()) return "";
  std::string out = "## Assumptions\n\n";
  if (f.evidence) out += markdown_safe(evidence_sentences(*f.evidence)) + "\n\n";
  if (const std::string notice = notice_sentences(f); !notice.empty())
    out += markdown_safe(notice) + "\n\n";
  out += fmt::format("The {} of {} assumptions with the largest effect, each over its range:\n\n",
                     std::min(kAssumptionsInMemo, f.assumptions.size()), f.assumptions.size());
  out += markdown_header({"assumption", "value (range)", "cost", "time", "source"});
  for (std::size_t k = 0; k < std::min(kAssumptionsInMemo, f.assumptions.size()); ++k) {
    const AssumptionEffect& a = f.assumptions[k];
    out += markdown_row({markdown_safe(a.what), markdown_safe(a.value),
                         a.cost_effect_usd ? signed_usd(*a.cost_effect_usd) : "unknown",
                         signed_duration(a.time_effect_seconds), markdown_safe(a.source)});
  }
  return out + "\n";
}

std::string memo_prices(const Plan& plan, const Forecast& f) {
  std::string out = "## Prices\n\n" + markdown_header({"pool", "a node's hour", "source", "as of"});
  for (const PlannedPool& p : plan.pools) {
    const double usd =
        double(p.price.machine.nano_usd_per_hour + p.price.accelerators.nano_usd_per_hour) * 1e-9;
    out += markdown_row({markdown_safe(p.name), p.price.known ? format_usd(Usd{usd}) : "unknown",
                         markdown_safe(p.price.source), p.price.as_of});
  }
  for (const PurchaseForecast& p : f.purchases)
    if (const std::string text = text_of(p); !text.empty() && !is_warned_of(p))
      out += "\n- " + markdown_safe(text) + ".\n";
  const double network = f.cost_breakdown_usd[std::size_t(CostPart::network)];
  if (network > 0)
    out += fmt::format("\n- data that leaves the zone or the region costs {}.\n",
                       format_usd(Usd{network}));
  return out + "\n";
}

std::string memo_provenance(const Forecast& f) {
  std::string out;
  for (const std::string& calibration : f.calibrations)
    out += fmt::format("Calibrated by {}.\n\n", markdown_safe(calibration));
  const std::string digest = f.catalog_digest.empty() ? "" : ", catalog " + f.catalog_digest;
  return out + fmt::format("{} simulated runs, seed {}, {}{}.\n", format_count(f.replications),
                           f.seed, engine_text("network engine", f.engine), digest);
}

}  // namespace reckon
