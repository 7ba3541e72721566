#include "report/accuracy/reliability.h"

#include <fmt/format.h>

#include "report/json_parts.h"
#include "report/text.h"

namespace reckon {
namespace {

std::string published_text(const std::optional<PublishedRange>& range, double scale, int digits) {
  if (!range) return "";
  if (range->low == range->high) return fmt::format("{:.{}f}", range->low * scale, digits);
  return fmt::format("{:.{}f} .. {:.{}f}", range->low * scale, digits, range->high * scale, digits);
}

std::string predicted_spread(const Quantiles& q, double scale, int digits) {
  return fmt::format("{:.{}f} ({:.{}f} .. {:.{}f})", q.p50 * scale, digits, q.p5 * scale, digits,
                     q.p95 * scale, digits);
}

double width(const Quantiles& q) { return q.p5 > 0 ? q.p95 / q.p5 : 0; }

const char* inside_or_not(bool known, bool inside) {
  return !known ? "" : inside ? "inside" : "OUTSIDE";
}

Json json_of_published(const std::optional<PublishedRange>& range) {
  if (!range) return nullptr;
  return {{"low", range->low}, {"high", range->high}};
}

std::optional<PublishedRange> lost_of(const ReliabilityRun& run) {
  if (!run.goodput) return std::nullopt;
  return PublishedRange{1 - run.goodput->high, 1 - run.goodput->low};
}

}  // namespace

std::string reliability_table(const ReliabilityScores& scores) {
  Columns rows;
  rows.row({"run", "accelerators", "interruptions", "forecast (5 .. 95 %)", "p95/p5", "",
            "goodput lost %", "forecast (5 .. 95 %)", "p95/p5", ""});
  for (const ScoredReliability& s : scores.runs)
    rows.row({s.run.name, format_count(s.run.accelerators),
              published_text(s.run.interruptions, 1, 0), predicted_spread(s.interruptions, 1, 0),
              fmt::format("{:.1f}", width(s.interruptions)),
              inside_or_not(s.run.interruptions.has_value(), s.interruptions_inside()),
              published_text(lost_of(s.run), 100, 1), predicted_spread(s.goodput_lost, 100, 1),
              fmt::format("{:.1f}", width(s.goodput_lost)),
              inside_or_not(s.run.goodput.has_value(), s.goodput_inside())});
  std::string out = rows.text();
  out += fmt::format("{} of {} rows scored\n", scores.runs.size(), scores.counts.rows);
  return out;
}

std::string reliability_json(const ReliabilityScores& scores) {
  Json out = head("accuracy");
  out["from"] = "reliability";
  out["rows"] = scores.counts.rows;
  out["runs"] = Json::array();
  for (const ScoredReliability& s : scores.runs)
    out["runs"].push_back({{"run", s.run.name},
                           {"line", s.run.line},
                           {"accelerators", s.run.accelerators},
                           {"evidence", s.run.evidence},
                           {"interruptions_published", json_of_published(s.run.interruptions)},
                           {"interruptions", json_of(s.interruptions)},
                           {"interruptions_inside", s.interruptions_inside()},
                           {"goodput_lost_published", json_of_published(lost_of(s.run))},
                           {"goodput_lost", json_of(s.goodput_lost)},
                           {"goodput_inside", s.goodput_inside()}});
  return dump(out, 2);
}

}  // namespace reckon
