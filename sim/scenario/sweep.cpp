#include "sim/scenario/sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace reckon {
namespace {

using Error = tl::unexpected<std::string>;

constexpr std::string_view kExample = "--sweep cluster.pools.p100.nodes=1..8, or =1,2,4";
constexpr double kSlack = 1e-9;  // of a step: 0.1..0.3..0.1 reaches its end

struct Amount {
  double number = 0;
  std::string unit;
};

std::optional<Amount> parse_amount(std::string_view text) {
  const std::size_t end = std::min(text.find_first_not_of("0123456789.-_"), text.size());
  const auto number = parse_number(text.substr(0, end));
  if (!number) return std::nullopt;
  return Amount{*number, std::string(text.substr(end))};
}

std::vector<std::string> split_list(std::string_view text) {
  std::vector<std::string> values(1);
  int depth = 0;
  char quote = 0;
  for (const char c : text) {
    if (quote != 0) {
      if (c == quote) quote = 0;
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '[' || c == '{') {
      ++depth;
    } else if (c == ']' || c == '}') {
      --depth;
    } else if (c == ',' && depth == 0) {
      values.emplace_back();
      continue;
    }
    values.back() += c;
  }
  return values;
}

std::string written(double number, const std::string& unit) {
  return fmt::format("{:.12g}{}", number, unit);
}

Parsed<std::vector<std::string>> doubled(double from, double to, const std::string& unit) {
  std::vector<std::string> values;
  double v = from;
  for (; v < to && values.size() <= kMostSweepPoints; v = v == 0 ? 1 : 2 * v)
    values.push_back(written(v, unit));
  values.push_back(written(to, unit));
  return values;
}

Parsed<std::vector<std::string>> stepped(double from, double to, double step,
                                         const std::string& unit) {
  if (!(step > 0)) return Error(fmt::format("the step {} is not positive", step));
  if ((to - from) / step > double(kMostSweepPoints))
    return Error(fmt::format("more than {} values", kMostSweepPoints));
  std::vector<std::string> values;
  for (int k = 0; from + k * step <= to + kSlack * step; ++k)
    values.push_back(written(from + k * step, unit));
  return values;
}

Parsed<std::vector<std::string>> parse_range(std::string_view text, std::size_t dots) {
  std::string_view last = text.substr(dots + 2);
  std::optional<Amount> step;
  if (const std::size_t more = last.find(".."); more != std::string_view::npos) {
    step = parse_amount(last.substr(more + 2));
    if (!step) return Error(fmt::format("'{}' is no range", text));
    last = last.substr(0, more);
  }
  const auto from = parse_amount(text.substr(0, dots));
  const auto to = parse_amount(last);
  if (!from || !to) return Error(fmt::format("'{}' is no range", text));
  const std::string unit = to->unit;
  const auto fits = [&](const Amount& a) { return a.unit.empty() || a.unit == unit; };
  if (!fits(*from) || (step && !fits(*step)))
    return Error(fmt::format("the numbers of '{}' have different units", text));
  if (from->number < 0 || from->number > to->number)
    return Error(fmt::format("'{}' does not run upwards from 0 or more", text));
  return step ? stepped(from->number, to->number, step->number, unit)
              : doubled(from->number, to->number, unit);
}

}  // namespace

Parsed<SweepAxis> parse_sweep(std::string_view text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos || equals == 0)
    return Error(fmt::format("'{}' is not path=values; example: {}", text, kExample));
  SweepAxis axis{std::string(text.substr(0, equals)), {}};
  const std::string_view values = text.substr(equals + 1);
  const std::size_t dots = values.find("..");
  // "../data" and "[1..2]" are values; a range begins with a digit.
  if (dots != std::string_view::npos && values.find_first_of("[{\"',/") == std::string_view::npos) {
    auto range = parse_range(values, dots);
    if (!range) return Error(fmt::format("{}; example: {}", range.error(), kExample));
    axis.values = std::move(*range);
  } else {
    axis.values = split_list(values);
  }
  for (const std::string& value : axis.values)
    if (value.empty())
      return Error(fmt::format("'{}' has an empty value; example: {}", text, kExample));
  return axis;
}

std::vector<std::vector<std::string>> sweep_points(std::span<const SweepAxis> axes) {
  std::vector<std::vector<std::string>> points(1);
  for (const SweepAxis& axis : axes) {
    std::vector<std::vector<std::string>> longer;
    for (const auto& point : points)
      for (const std::string& value : axis.values) {
        longer.push_back(point);
        longer.back().push_back(value);
      }
    points = std::move(longer);
  }
  return points;
}

}  // namespace reckon
