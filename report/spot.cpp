#include "report/spot.h"

#include <fmt/format.h>

#include "report/json_parts.h"
#include "report/table.h"
#include "report/text.h"
#include "sim/base/unit_text.h"
#include "sim/forecast/compare.h"

namespace reckon {
namespace {

constexpr auto kPreemption = static_cast<std::size_t>(Interruption::preemption);
constexpr auto kLost = static_cast<std::size_t>(Badput::lost_work);
constexpr bool kGone = true;

/// The columns: on demand, then spot by what the program does, the plan's own first.
struct Column {
  std::string title;
  std::size_t saves = 0;
};

std::vector<Column> columns_of(const SpotComparison& c) {
  std::vector<Column> columns;
  for (const bool saves : {c.saves, !c.saves})
    if (c.spot[saves ? 1 : 0][0])
      columns.push_back({fmt::format("spot, {} on a notice{}", saves ? "saves" : "no save",
                                     saves == c.saves ? " (planned)" : ""),
                         saves ? std::size_t{1} : std::size_t{0}});
  return columns;
}

const Forecast* at(const SpotComparison& c, const Column& column, bool gone) {
  const auto& forecast = c.spot[column.saves][gone ? 1 : 0];
  return forecast ? &*forecast : nullptr;
}

std::string cost_of(const Forecast& f) { return f.cost_usd ? usd_range(*f.cost_usd) : "unknown"; }

class Table {
 public:
  Table(const SpotComparison& c, const std::vector<Column>& columns) : c_(c), columns_(columns) {
    std::vector<std::string> head{"", "on demand"};
    for (const Column& column : columns) head.push_back(column.title);
    rows_.row(std::move(head));
  }

  template <class Cell>
  void row(std::string name, bool gone, bool on_demand, Cell cell) {
    std::vector<std::string> cells{std::move(name), on_demand ? cell(c_.on_demand) : "-"};
    for (const Column& column : columns_) {
      const Forecast* f = at(c_, column, gone);
      cells.push_back(f == nullptr ? "-" : cell(*f));
    }
    rows_.row(std::move(cells));
  }
  std::string text() const { return rows_.text(); }

 private:
  const SpotComparison& c_;
  const std::vector<Column>& columns_;
  Columns rows_{Columns::Kind::facts};
};

std::string cheaper(const SpotComparison& c, const Forecast& f) {
  if (f.costs_usd.empty() || c.on_demand.costs_usd.empty()) return "unknown";
  return probability_text(probability_less(f.costs_usd, c.on_demand.costs_usd), f.replications);
}

std::string whose(const SpotLimit& limit) { return limit.assumed ? "assumed" : "the scenario's"; }

/// "if a node lives for more than 2 h on the mean (24 h, assumed)".
std::string condition(const SpotLimit& limit, const std::string& what, const char* relation) {
  const std::string is =
      limit.is.count() > 0 ? fmt::format(" ({}, {})", format_duration(limit.is), whose(limit)) : "";
  return fmt::format("{} for {} than {} on the mean{}", what, relation,
                     format_duration(*limit.turns), is);
}

std::string conclusion(const SpotComparison& c, int width) {
  if (!c.on_demand.cost_usd || !c.planned().cost_usd) return "\nA price is unknown.\n";
  std::vector<std::string> conditions;
  if (c.life && c.life->turns) conditions.push_back(condition(*c.life, "a node lives", "more"));
  if (c.gone && c.gone->turns) conditions.push_back(condition(*c.gone, "capacity is gone", "less"));
  std::string said;
  if (conditions.empty()) {
    const bool wins = c.planned().cost_usd->p50 < c.on_demand.cost_usd->p50;
    said = fmt::format(
        "Spot is {} at the median for any node lifetime and any time without "
        "capacity (1 min to 100 d).",
        wins ? "cheaper" : "not cheaper");
  } else {
    said = fmt::format("Spot is cheaper at the median if {}.",
                       fmt::join(conditions, ", with all else as planned; and if "));
  }
  std::string text = "\n";
  for (const std::string& line : wrap(said, width - 2)) text += line + "\n";
  return text;
}

}  // namespace

std::string spot_table(const SpotComparison& c, const Plan& spot, int width) {
  const std::vector<Column> columns = columns_of(c);
  const bool may_be_gone = c.gone.has_value();
  Table table(c, columns);
  const auto time = [](const Forecast& f) { return time_range(f.time_seconds); };
  table.row("reclaims (mean)", may_be_gone, false,
            [](const Forecast& f) { return fmt::format("{:.1f}", f.interruptions[kPreemption]); });
  table.row("lost work (of the time)", may_be_gone, true,
            [](const Forecast& f) { return format_percent(f.badput[kLost]); });
  table.row("time, capacity always there", !kGone, true, time);
  if (may_be_gone) table.row("time, capacity gone at times", kGone, false, time);
  table.row("cost, capacity always there", !kGone, true, cost_of);
  if (may_be_gone) table.row("cost, capacity gone at times", kGone, false, cost_of);
  table.row("probability of being cheaper", may_be_gone, false,
            [&](const Forecast& f) { return cheaper(c, f); });
  std::string text = fmt::format("{}: spot beside on demand\n\n", spot.name) + table.text();
  text += fmt::format(
      "  median (5th .. 95th percentile) of {} replications with common random numbers, seed {}\n",
      format_count(c.on_demand.replications), c.on_demand.seed);
  if (may_be_gone) {
    text += "\n";
    const std::string said = fmt::format(
        "Assumed: spot capacity is available for {} and unavailable for {} in turn ({}); on-demand "
        "capacity is always available.",
        format_duration(spot.shortage.every.value), format_duration(spot.shortage.lasts.value),
        whose(*c.gone));
    for (const std::string& line : wrap(said, width - 2)) text += line + "\n";
  }
  return text + conclusion(c, width);
}

std::string spot_json(const SpotComparison& c) {
  const auto limit = [](const std::optional<SpotLimit>& l) -> Json {
    if (!l) return nullptr;
    Json out = {{"assumed", l->assumed}};
    out["is_seconds"] = l->is.count() > 0 ? Json(l->is.count()) : Json(nullptr);
    out["turns_at_seconds"] = l->turns ? Json(l->turns->count()) : Json(nullptr);
    return out;
  };
  Json out = head("compare");
  out["on_demand"] = forecast_object(c.on_demand);
  out["spot"] = Json::array();
  for (const bool saves : {false, true})
    for (const bool gone : {false, true})
      if (const auto& f = c.spot[saves ? 1 : 0][gone ? 1 : 0])
        out["spot"].push_back({{"saves_on_notice", saves},
                               {"capacity_gone_at_times", gone},
                               {"planned", saves == c.saves && gone == c.gone.has_value()},
                               {"forecast", forecast_object(*f)}});
  out["cheaper_if"] = {{"mean_life_above", limit(c.life)}, {"mean_time_gone_below", limit(c.gone)}};
  return dump(out, 2);
}

}  // namespace reckon
