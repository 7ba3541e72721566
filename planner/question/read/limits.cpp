#include "planner/question/reader.h"
#include "sim/base/unit_text.h"
#include "sim/scenario/resolve/pricing.h"

// What must hold.
namespace reckon::planner {

void QuestionReader::read_memory(const std::string& text) {
  if (text.ends_with('%'))
    q_.memory_share = *parse_fraction(text);
  else if (!text.empty())
    q_.memory = *parse_bytes(text);
}

std::optional<double> QuestionReader::probability_of(const std::string& text) {
  const std::size_t at = text.find('@');
  if (at == std::string::npos) return std::nullopt;
  return *parse_fraction(text.substr(at + 1));
}

void QuestionReader::read_limits(const PlanSpec& spec) {
  if (!spec.deadline.empty()) {
    const std::string value = spec.deadline.substr(0, spec.deadline.find('@'));
    const auto duration = parse_duration(value);
    const auto date = parse_utc_time(value);
    const auto& start = q_.file.scenario.start;
    if (date && !start)
      error("plan.deadline", "a deadline by date needs the scenario's start",
            "start: 2026-12-04T18:00:00Z");
    else
      q_.deadline = Limit{
          duration ? duration->count() : std::chrono::duration<double>(*date - *start).count(),
          probability_of(spec.deadline), spec.deadline};
  }
  if (!spec.budget.empty()) {
    const auto money = parse_money(spec.budget.substr(0, spec.budget.find('@')));
    const auto usd = planning::to_usd_rate(*money, q_.file.scenario.prices);
    if (!usd)
      error("plan.budget", usd.error(), "prices: {currency: EUR, usd_rate: 0.92}");
    else
      q_.budget = Limit{usd->v, probability_of(spec.budget), spec.budget};
  }
}

}  // namespace reckon::planner
