#include "report/compare.h"

#include <fmt/format.h>

#include <algorithm>

#include "report/json_parts.h"
#include "report/prices.h"
#include "report/table.h"
#include "report/text.h"
#include "sim/base/unit_text.h"

namespace reckon {
namespace {

using Probabilities = std::vector<std::vector<std::optional<double>>>;

std::string candidates(const CandidateComparison& c, std::span<const std::string> names,
                       int width) {
  Columns rows(Columns::Kind::facts);
  rows.row({"", "time", "cost", "goodput", "energy", "CO2"});
  std::string legend;
  for (std::size_t k = 0; k < c.forecasts.size(); ++k) {
    const Forecast& f = c.forecasts[k];
    const std::string misfit = f.feasible ? ""
                                          : fmt::format("  (needs {} of {} per accelerator)",
                                                        format_bytes(f.memory.required()),
                                                        format_bytes(f.memory.available));
    const auto lines = wrap(names[k] + misfit, width - 5);
    for (std::size_t l = 0; l < lines.size(); ++l)
      legend += fmt::format("  {:<3}{}\n", l == 0 ? candidate_letter(k) : "", lines[l]);
    if (!f.feasible)
      rows.row({candidate_letter(k), "not feasible", "-", "-", "-", "-"});
    else
      rows.row(
          {candidate_letter(k), time_range(f.time_seconds),
           f.cost_usd ? usd_range(*f.cost_usd) : "unknown", percent_range(f.goodput),
           f.energy ? format_energy(f.energy->joules.p50) : "unknown",
           f.energy && f.energy->co2_grams ? format_mass(f.energy->co2_grams->p50) : "unknown"});
  }
  const Forecast& first = c.forecasts.front();
  return legend + "\n" + rows.text() +
         fmt::format(
             "  median (5th .. 95th percentile) of {} replications with common random numbers, "
             "seed {}\n",
             format_count(first.replications), first.seed);
}

std::string matrix(const char* title, const Probabilities& p, int n) {
  Columns rows(Columns::Kind::facts);
  std::vector<std::string> header{""};
  for (std::size_t b = 0; b < p.size(); ++b) header.push_back(candidate_letter(b));
  rows.row(header);
  for (std::size_t a = 0; a < p.size(); ++a) {
    std::vector<std::string> cells{candidate_letter(a)};
    for (const auto& value : p[a]) cells.push_back(value ? probability_text(*value, n) : "-");
    rows.row(cells);
  }
  return fmt::format("\n{}\n", title) + rows.text();
}

std::string differences(const CandidateComparison& c) {
  Columns rows(Columns::Kind::facts);
  for (std::size_t a = 0; a < c.forecasts.size(); ++a)
    for (std::size_t b = a + 1; b < c.forecasts.size(); ++b) {
      const auto& time = c.time_difference[b][a];
      const auto& cost = c.cost_difference[b][a];
      rows.row({fmt::format("{} - {}", candidate_letter(b), candidate_letter(a)),
                time ? time_difference(*time) : "-", cost ? usd_difference(*cost) : "-"});
    }
  return "\nDifferences, replication by replication\n" + rows.text();
}

/// Cheapest first by the mean at median prices.
std::vector<std::size_t> by_cost(const CandidateComparison& c) {
  std::vector<std::size_t> order;
  for (std::size_t k = 0; k < c.forecasts.size(); ++k)
    if (c.forecasts[k].cost_at_medians_usd && c.forecasts[k].unfinished_share == 0)
      order.push_back(k);
  std::ranges::stable_sort(order, {},
                           [&](std::size_t k) { return *c.forecasts[k].cost_at_medians_usd; });
  return order;
}

/// The price on which the first rank hangs.
std::string turn(const CandidateComparison& c, int width) {
  const std::vector<std::size_t> order = by_cost(c);
  if (order.size() < 2) return "";
  const std::string text = rank_turn_text(c.forecasts[order[0]], c.forecasts[order[1]]);
  if (text.empty()) return "";
  std::string out = "\n";
  for (const std::string& line :
       wrap(fmt::format("{} is the cheapest {}; else {}.", candidate_letter(order[0]), text,
                        candidate_letter(order[1])),
            width - 2))
    out += "  " + line + "\n";
  return out;
}

template <class T, class F>
Json json_matrix(const std::vector<std::vector<std::optional<T>>>& matrix, F value_of) {
  Json rows = Json::array();
  for (const auto& row : matrix) {
    Json cells = Json::array();
    for (const auto& value : row) cells.push_back(value ? value_of(*value) : Json(nullptr));
    rows.push_back(std::move(cells));
  }
  return rows;
}

}  // namespace

std::string candidate_letter(std::size_t k) {
  return k < 26 ? std::string(1, char('A' + k)) : std::to_string(k + 1);
}

std::string compare_table(const CandidateComparison& c, std::span<const std::string> names,
                          int width) {
  return candidates(c, names, width) +
         matrix("Probability that the row is faster than the column", c.probability_faster,
                c.forecasts.front().replications) +
         matrix("Probability that the row is cheaper than the column", c.probability_cheaper,
                c.forecasts.front().replications) +
         differences(c) + turn(c, width);
}

std::string compare_json(const CandidateComparison& c, std::span<const std::string> names) {
  Json out = head("compare");
  out["names"] = std::vector<std::string>(names.begin(), names.end());
  out["scenarios"] = Json::array();
  for (const Forecast& f : c.forecasts) out["scenarios"].push_back(forecast_object(f));
  const auto share = [](double v) { return number(v); };
  const auto range = [](const Quantiles& q) { return json_of(q); };
  out["probability_cheaper"] = json_matrix(c.probability_cheaper, share);
  out["probability_faster"] = json_matrix(c.probability_faster, share);
  const std::vector<std::size_t> order = by_cost(c);
  out["rank_turns_at"] = nullptr;
  if (order.size() > 1)
    if (const auto found = rank_turn(c.forecasts[order[0]], c.forecasts[order[1]]))
      out["rank_turns_at"] = {{"cheapest", order[0]},
                              {"next", order[1]},
                              {"price", found->price.what},
                              {"usd_per_hour_now", found->price.usd_per_hour},
                              {"usd_per_hour", found->usd_per_hour},
                              {"above", found->dearer},
                              {"probability", number(found->chance)}};
  out["cost_difference_usd"] = json_matrix(c.cost_difference, range);
  out["time_difference_seconds"] = json_matrix(c.time_difference, range);
  return dump(out, 2);
}

}  // namespace reckon
