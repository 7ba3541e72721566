#include "report/rank_table.h"

#include <fmt/format.h>

#include <algorithm>

#include "report/text.h"
#include "sim/base/unit_text.h"

namespace reckon {

std::string rank_table(const std::vector<kubernetes::RankStatus>& ranks, std::size_t most) {
  std::vector<const kubernetes::RankStatus*> order;
  for (const auto& rank : ranks) order.push_back(&rank);
  std::stable_partition(order.begin(), order.end(),
                        [](const auto* r) { return r->state != "runs"; });
  Columns table;
  table.row({"process", "node", "state", "step", "time"});
  for (std::size_t k = 0; k < std::min(most, order.size()); ++k) {
    const auto& r = *order[k];
    constexpr std::size_t kLongestState = 60;
    table.row({r.name, r.node, r.state.substr(0, kLongestState),
               r.steps_done > 0 ? format_count(double(r.steps_done)) : "",
               r.step.count() > 0 ? format_duration(r.step) : ""});
  }
  std::string text = table.text();
  if (order.size() > most) text += fmt::format("... and {} more\n", order.size() - most);
  return text;
}

}  // namespace reckon
