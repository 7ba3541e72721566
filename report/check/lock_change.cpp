#include "report/check/lock_change.h"

#include <fmt/format.h>

#include <cmath>

#include "report/check/lock_change_json.h"
#include "report/json_parts.h"
#include "report/memo/parts.h"
#include "report/table.h"
#include "report/text.h"
#include "sim/base/text/printable.h"

namespace reckon {
namespace {

using planner::Cause;
using planner::kCauses;

std::string figure_text(FigureChange::Unit unit, double value) {
  if (!std::isfinite(value)) return "no answer";
  return unit == FigureChange::Unit::time ? time_value(Seconds{value}) : usd_value(value);
}

std::string share_of_figure(FigureChange::Unit unit, double share) {
  if (share == 0) return "0";
  return unit == FigureChange::Unit::time ? signed_duration(share) : signed_usd(share);
}

/// "your edit +40.00 USD, prices +3.10 USD"; causes without a share are left out.
std::string shares_text(const FigureChange& f) {
  const auto shares = planner::shares_of(f.swaps);
  if (!shares) {
    const auto cause =
        planner::first_to_break(f.swaps, [](double value) { return std::isfinite(value); });
    return cause ? std::string(to_text(*cause)) : "not separable";
  }
  std::string out;
  for (std::size_t k = 0; k < kCauses.size(); ++k)
    if ((*shares)[k] != 0)
      out += fmt::format("{}{} {}", out.empty() ? "" : ", ", to_text(kCauses[k]),
                         share_of_figure(f.unit, (*shares)[k]));
  return out.empty() ? "no change" : out;
}

}  // namespace

std::string lock_change_text(const LockChange& change, int indent) {
  const std::string space(std::size_t(indent), ' ');
  if (change.same)
    return fmt::format("{}as in {}: no edit, no other price, evidence or reckon\n", space,
                       printable_file(change.lock));
  std::string out;
  for (const FigureChange& f : change.figures)
    out += fmt::format("{}{} {} -> {}: {}\n", space, f.what, figure_text(f.unit, f.swaps.then),
                       figure_text(f.unit, f.swaps.now), shares_text(f));
  for (const std::string& note : change.notes) out += fmt::format("{}{}\n", space, note);
  return out;
}

std::string lock_change_markdown(const LockChange& change) {
  std::vector<std::string> head{"", "before"};
  for (const Cause cause : kCauses) head.emplace_back(to_text(cause));
  head.emplace_back("now");
  std::string out = markdown_header(head);
  for (const FigureChange& f : change.figures) {
    std::vector<std::string> cells{f.what, figure_text(f.unit, f.swaps.then)};
    const auto shares = planner::shares_of(f.swaps);
    const auto broken =
        planner::first_to_break(f.swaps, [](double value) { return std::isfinite(value); });
    for (std::size_t k = 0; k < kCauses.size(); ++k)
      cells.push_back(shares                 ? share_of_figure(f.unit, (*shares)[k])
                      : broken == kCauses[k] ? "no answer"
                                             : "");
    cells.push_back("**" + figure_text(f.unit, f.swaps.now) + "**");
    out += markdown_row(cells);
  }
  for (const std::string& note : change.notes) out += "\n" + markdown_safe(note) + "\n";
  return out;
}

Json lock_change_object(const LockChange* change) {
  if (change == nullptr) return nullptr;
  Json figures = Json::array();
  for (const FigureChange& f : change->figures) {
    Json shares = Json::object();
    const auto parts = planner::shares_of(f.swaps);
    for (std::size_t k = 0; k < kCauses.size(); ++k)
      shares[std::string(word_of_cause(kCauses[k]))] = parts ? Json((*parts)[k]) : Json(nullptr);
    figures.push_back({{"what", f.what},
                       {"unit", f.unit == FigureChange::Unit::time ? "seconds" : "USD"},
                       {"then", number(f.swaps.then)},
                       {"now", number(f.swaps.now)},
                       {"shares", shares}});
  }
  return {{"file", change->lock},
          {"same", change->same},
          {"figures", figures},
          {"notes", change->notes}};
}

}  // namespace reckon
