#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "sim/base/check.h"
#include "sim/base/diagnostic.h"
#include "sim/base/unit_text.h"
#include "sim/scenario/scenario.h"
#include "sim/scenario/yaml/fields.h"
#include "sim/scenario/yaml/reader.h"

namespace reckon {
namespace {

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlanks = " \t";
  const std::size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlanks) - begin + 1);
}

template <class E>
tl::unexpected<std::string> unknown(std::string_view what, std::string_view text) {
  const auto texts = texts_of<E>();
  return tl::make_unexpected(fmt::format("unknown {} '{}'{} (allowed: {})", what, text,
                                         did_you_mean(text, texts), fmt::join(texts, ", ")));
}

bool is_distribution(Metric metric) {
  return metric == Metric::time || metric == Metric::cost || metric == Metric::goodput ||
         metric == Metric::interruptions || metric == Metric::energy || metric == Metric::co2 ||
         metric == Metric::latency || metric == Metric::wait || metric == Metric::jct ||
         metric == Metric::slowdown;
}

struct Call {
  std::string_view function, argument;
};
/// "p95(time)"; nullopt: no parentheses around the end.
std::optional<Call> call_of(std::string_view text) {
  const std::size_t open = text.find('(');
  if (open == std::string_view::npos || text.back() != ')') return std::nullopt;
  return Call{trimmed(text.substr(0, open)),
              trimmed(text.substr(open + 1, text.size() - open - 2))};
}

/// The left side into metric, share and statistic.
Parsed<Expectation> parse_left(std::string_view left, Expectation e) {
  if (left.empty())
    return tl::make_unexpected("the left side is empty, write a metric such as p95(time)");
  const auto call = call_of(left);
  std::string_view metric = left;
  if (call && call->function == "step.share") {
    const auto share = from_text<StepShare>(call->argument);
    if (!share) return unknown<StepShare>("share", call->argument);
    e.metric = Metric::step_share;
    e.share = *share;
    return e;
  }
  if (call) {
    const auto statistic = from_text<Statistic>(call->function);
    if (!statistic) return unknown<Statistic>("statistic", call->function);
    e.statistic = *statistic;
    metric = call->argument;
  }
  const auto found = from_text<Metric>(metric);
  if (!found) return unknown<Metric>("metric", metric);
  e.metric = *found;
  if (e.metric == Metric::step_share)
    return tl::make_unexpected("step.share needs a part, such as step.share(communication)");
  if (call && !is_distribution(e.metric))
    return tl::make_unexpected(
        fmt::format("{} is one number, write it without {}( )", metric, call->function));
  if (e.statistic == Statistic::p99 && e.metric != Metric::latency)
    return tl::make_unexpected(
        fmt::format("p99 is of latency; {} has mean, p5, p50 and p95", metric));
  if (!call && is_distribution(e.metric)) e.statistic = Statistic::mean;
  return e;
}

Parsed<double> parse_cost(std::string_view text, Expectation& e) {
  const auto money = parse_money(text);
  if (!money) return tl::make_unexpected(money.error());
  if (money->currency != "USD") e.currency = money->currency;
  return money->amount;
}

Parsed<double> parse_feasible(std::string_view text, Comparison comparison) {
  if (comparison != Comparison::eq && comparison != Comparison::ne)
    return tl::make_unexpected("feasible is compared with == or !=");
  if (text != "true" && text != "false")
    return tl::make_unexpected(fmt::format("feasible is true or false, not '{}'", text));
  return text == "true" ? 1.0 : 0.0;
}

/// "2026-12-14T08:00:00Z".
bool looks_like_date(std::string_view text) {
  return text.size() >= 10 && text[4] == '-' && text[7] == '-';
}

Parsed<double> parse_value(std::string_view text, Expectation& e) {
  switch (e.metric) {
    case Metric::time:
    case Metric::step_seconds:
    case Metric::latency:
    case Metric::wait:
    case Metric::jct:
    case Metric::makespan:
      return parse_duration(text).map([](Seconds s) { return s.count(); });
    case Metric::cost:
    case Metric::serving_cost:
      return parse_cost(text, e);
    case Metric::goodput:
    case Metric::step_mfu:
    case Metric::step_share:
    case Metric::serving_utilization:
    case Metric::serving_rejected:
    case Metric::utilization:
    case Metric::allocation:
    case Metric::fragmentation:
    case Metric::fairness:
      return parse_fraction(text);
    case Metric::energy:
      return parse_energy(text);
    case Metric::co2:
      return parse_mass(text);
    case Metric::memory:
      return parse_bytes(text).map([](Bytes b) { return b.v; });
    case Metric::samples_per_second:
    case Metric::tokens_per_second:
    case Metric::tokens_per_second_per_accelerator:
    case Metric::interruptions:
    case Metric::slowdown:
    case Metric::preemptions:
    case Metric::serving_replicas:
    case Metric::serving_requests_per_second:
      return parse_count(text);
    case Metric::feasible:
      return parse_feasible(text, e.comparison);
  }
  return tl::make_unexpected(std::string());
}

bool is_fraction(Metric metric) {
  return metric == Metric::goodput || metric == Metric::step_mfu || metric == Metric::step_share ||
         metric == Metric::serving_utilization || metric == Metric::serving_rejected ||
         metric == Metric::utilization || metric == Metric::allocation ||
         metric == Metric::fragmentation || metric == Metric::fairness;
}

}  // namespace

bool holds(double value, Comparison comparison, double bound) {
  switch (comparison) {
    case Comparison::le:
      return value <= bound;
    case Comparison::ge:
      return value >= bound;
    case Comparison::lt:
      return value < bound;
    case Comparison::gt:
      return value > bound;
    case Comparison::eq:
      return value == bound;
    case Comparison::ne:
      return value != bound;
  }
  RECKON_CHECK(false);
  return false;
}

bool is_of_serving(Metric metric) {
  return metric >= Metric::latency && metric <= Metric::serving_rejected;
}
bool is_of_trace(Metric metric) { return metric >= Metric::wait; }

Parsed<Expectation> parse_expectation(std::string_view text) {
  const std::string_view body = trimmed(text);
  const std::size_t at = body.find_first_of("<>=!");
  if (at == std::string_view::npos)
    return tl::make_unexpected(
        fmt::format("no comparison (allowed: {})", fmt::join(texts_of<Comparison>(), ", ")));
  const std::string_view from = body.substr(at);
  constexpr auto comparisons = words_of(Comparison{});
  const auto* comparison =
      std::ranges::find_if(comparisons, [&](const auto& c) { return from.starts_with(c.text); });
  if (comparison == comparisons.end()) return unknown<Comparison>("comparison", from.substr(0, 1));
  Expectation start;
  start.text = body;
  start.comparison = comparison->value;
  Parsed<Expectation> e = parse_left(trimmed(body.substr(0, at)), std::move(start));
  if (!e) return e;
  const std::string_view right = trimmed(from.substr(comparison->text.size()));
  if (e->metric == Metric::time && looks_like_date(right)) {
    e->date = parse_utc_time(right);
    if (!e->date)
      return tl::make_unexpected(
          fmt::format("'{}' is no date and time in UTC, such as 2026-12-14T08:00:00Z", right));
    return e;
  }
  const Parsed<double> value = parse_value(right, *e);
  if (!value) return tl::make_unexpected(value.error());
  if (*value < 0) return tl::make_unexpected("the value is negative");
  if (is_fraction(e->metric) && *value > 1)
    return tl::make_unexpected("the value is a fraction, at most 1 or 100%");
  e->value = *value;
  return e;
}

}  // namespace reckon
