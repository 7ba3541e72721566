#include "sim/accuracy/tables/run_schedule.h"

#include <algorithm>
#include <numeric>

#include <nlohmann/json.hpp>

#include "sim/base/unit_text.h"

namespace reckon {
namespace {

using Failure = tl::unexpected<std::string>;
constexpr const char* kShape = "batch is a number or a list of {\"batch_size\": N, \"epochs\": K}";

double sum_of(const std::vector<SchedulePart>& parts) {
  return std::accumulate(parts.begin(), parts.end(), 0.0,
                         [](double sum, const SchedulePart& p) { return sum + p.epochs; });
}

/// Are the parts' epochs those at which they end?
bool counts_on(const std::vector<SchedulePart>& parts, double epochs) {
  constexpr double kOneOff = 1;  // epochs
  const bool grow = std::ranges::adjacent_find(parts, [](const auto& a, const auto& b) {
                      return a.epochs >= b.epochs;
                    }) == parts.end();
  return parts.size() > 1 && grow && sum_of(parts) > epochs + kOneOff &&
         parts.back().epochs <= epochs + kOneOff;
}

tl::expected<std::vector<SchedulePart>, std::string> parts_of(std::string_view batch) {
  const auto list = nlohmann::json::parse(batch, nullptr, false);
  if (!list.is_array() || list.empty()) return Failure(kShape);
  std::vector<SchedulePart> parts;
  for (const auto& item : list) {
    if (!item.is_object() || !item.contains("batch_size") || !item.contains("epochs"))
      return Failure(kShape);
    const auto &size = item["batch_size"], &epochs = item["epochs"];
    if (!size.is_number() || !epochs.is_number()) return Failure(kShape);
    const SchedulePart part{size.get<double>(), epochs.get<double>()};
    constexpr double kMost = 1e9;
    const auto good = [](double v) { return v > 0 && v <= kMost; };
    if (!good(part.global_batch) || !good(part.epochs)) return Failure(kShape);
    parts.push_back(part);
  }
  return parts;
}

}  // namespace

tl::expected<Schedule, std::string> schedule_of(std::string_view batch, double epochs,
                                                double usual) {
  if (batch.empty()) return Schedule{{{usual, epochs}}};
  if (const auto one = parse_number(batch)) {
    if (*one < 1) return Failure(kShape);
    return Schedule{{{*one, epochs}}};
  }
  auto parts = parts_of(batch);
  if (!parts) return Failure(parts.error());
  if (counts_on(*parts, epochs))
    for (std::size_t i = parts->size(); i-- > 1;) (*parts)[i].epochs -= (*parts)[i - 1].epochs;
  const double scale = epochs / sum_of(*parts);
  for (SchedulePart& p : *parts) p.epochs *= scale;
  return Schedule{std::move(*parts)};
}

}  // namespace reckon
