#include "sim/serving/measured_service.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include "sim/base/text/metric_line.h"
#include "sim/base/text/printable.h"
#include "sim/base/unit_text.h"
#include "sim/scenario/resolve/serving.h"

namespace reckon {
namespace {

constexpr std::string_view kBatches = "reckon_serving_batches_total";
constexpr std::string_view kInstances = "reckon_serving_instances_total";
constexpr std::string_view kOutsideSum = "reckon_serving_outside_seconds_sum";
constexpr std::string_view kOutsideCount = "reckon_serving_outside_seconds_count";
constexpr std::string_view kBusy = "reckon_serving_busy_seconds_total";
constexpr std::string_view kAlone = "reckon_serving_alone_seconds";

/// Calls with each sample of a page whose value is a number from 0 on.
template <class Take>
void each_sample(std::string_view page, Take take) {
  while (!page.empty()) {
    const std::size_t end = std::min(page.find('\n'), page.size());
    if (const auto line = metric_line_in(page.substr(0, end)))
      if (const auto value = parse_number(line->value); value && *value >= 0) take(*line, *value);
    page.remove_prefix(std::min(end + 1, page.size()));
  }
}

double squared(double x) { return x * x; }

/// Sum over sizes of weight ((batch + s request) / t - 1)^2.
double loss(const std::vector<MeasuredBatches>& measured, double batch, double request) {
  double sum = 0;
  for (const MeasuredBatches& m : measured)
    sum += m.batches * squared((batch + m.size() * request) / m.time().count() - 1);
  return sum;
}

}  // namespace

bool is_serving_metrics(std::string_view text) {
  return text.find(kBatches) != std::string_view::npos;
}

Expected<std::vector<MeasuredBatches>> parse_serving_metrics(const std::string& name,
                                                             std::string_view text) {
  std::map<std::string, MeasuredBatches, std::less<>> by_size;
  each_sample(text, [&](const MetricLine& line, double value) {
    const std::string_view size = line.label("up_to");
    if (size.empty()) return;
    MeasuredBatches& m = by_size[std::string(size)];
    if (line.name == kBatches) m.batches += value;
    if (line.name == kInstances) m.instances += value;
    if (line.name == kBusy) m.busy += Seconds{value};
  });
  std::vector<MeasuredBatches> measured;
  for (const auto& [size, m] : by_size)
    if (m.batches > 0 && m.instances > 0 && m.busy.count() > 0) measured.push_back(m);
  if (measured.empty())
    return tl::unexpected(Diagnostics{{Severity::error,
                                       {name, 0, 0},
                                       "the server has answered nothing yet",
                                       "read its /metrics again under load"}});
  return measured;
}

std::optional<MeasuredOverhead> fit_serving_overhead(const std::vector<MeasuredBatches>& measured) {
  // Normal equations of the relative errors: unknowns batch, request; weights n / t^2.
  double n = 0, s = 0, ss = 0, t = 0, st = 0;
  for (const MeasuredBatches& m : measured) {
    const double weight = m.batches / squared(m.time().count()), size = m.size();
    n += weight;
    s += weight * size;
    ss += weight * size * size;
    t += weight * m.time().count();
    st += weight * size * m.time().count();
  }
  const double determinant = n * ss - s * s;
  constexpr double kApart = 1e-6;  // of the sizes' variance, relative
  if (determinant <= kApart * n * ss) return std::nullopt;
  double batch = (ss * t - s * st) / determinant, request = (n * st - s * t) / determinant;
  if (batch < 0 || request < 0) {  // the best of the two borders
    const double alone = t / n, each = st / ss;
    const bool by_request = loss(measured, 0, each) < loss(measured, alone, 0);
    batch = by_request ? 0 : alone;
    request = by_request ? each : 0;
  }
  MeasuredOverhead fit{Seconds{batch}, Seconds{request}, 0};
  for (const MeasuredBatches& m : measured)
    fit.error = std::max(fit.error, std::abs((batch + m.size() * request) / m.time().count() - 1));
  return fit;
}

std::optional<Seconds> measured_outside(std::string_view text) {
  double sum = 0, count = 0;
  each_sample(text, [&](const MetricLine& line, double value) {
    if (line.name == kOutsideSum) sum += value;
    if (line.name == kOutsideCount) count += value;
  });
  return count > 0 ? std::optional(Seconds{sum / count}) : std::nullopt;
}

std::vector<std::pair<double, Seconds>> measured_alone(std::string_view text) {
  std::vector<std::pair<double, Seconds>> alone;
  each_sample(text, [&](const MetricLine& line, double value) {
    if (line.name != kAlone) return;
    const auto instances = parse_number(line.label("instances"));
    if (instances && *instances >= 1 && value > 0) alone.emplace_back(*instances, Seconds{value});
  });
  std::ranges::sort(alone);
  return alone;
}

namespace {

using TimesBySize = std::vector<std::pair<double, Seconds>>;

/// Straight lines between; the first and the last beyond.
double between(const std::vector<std::pair<double, double>>& points, double at) {
  if (at <= points.front().first) return points.front().second;
  for (std::size_t k = 1; k < points.size(); ++k) {
    const auto& [a, low] = points[k - 1];
    const auto& [b, high] = points[k];
    if (at <= b) return low + (high - low) * ((at - a) / (b - a));
  }
  return points.back().second;
}

/// What passes took alone, slowed as passes of about their size were under load.
void fit_slowdown(MeasuredService& service, const std::vector<MeasuredBatches>& measured,
                  const TimesBySize& alone) {
  std::vector<std::pair<double, double>> curve;
  for (const auto& [size, time] : alone) curve.emplace_back(size, time.count());
  const double largest = alone.back().first;
  double under_load = 0, by_themselves = 0;
  for (const MeasuredBatches& m : measured) {
    if (m.size() > largest) continue;
    under_load += m.busy.count();
    by_themselves += m.batches * between(curve, m.size());
  }
  if (by_themselves <= 0) return;
  const double slowed = under_load / by_themselves;
  service.slowed = slowed;
  std::vector<std::pair<double, double>> factors;
  for (const MeasuredBatches& m : measured)
    if (m.size() <= largest)
      factors.emplace_back(
          m.size(), (m.batches * m.time().count() / between(curve, m.size()) + kSeen * slowed) /
                        (m.batches + kSeen));
  std::ranges::sort(factors);
  const double seen = factors.back().first;
  for (const auto& [size, time] : alone)
    service.times.emplace_back(size, time * (size <= seen ? between(factors, size) : slowed));
}

/// What each size took, but those that were hardly ever seen: the lines between their neighbours
/// say more.
TimesBySize table_of(const std::vector<MeasuredBatches>& measured) {
  constexpr double kRare = 0.002;  // of the batches of the most frequent size
  double most = 0;
  for (const MeasuredBatches& m : measured) most = std::max(most, m.batches);
  TimesBySize times;
  for (const MeasuredBatches& m : measured)
    if (m.batches >= kRare * most) times.emplace_back(m.size(), m.time());
  std::ranges::sort(times);
  return times;
}

}  // namespace

MeasuredService fit_serving(const std::vector<MeasuredBatches>& measured,
                            std::optional<Seconds> outside, const TimesBySize& alone) {
  MeasuredService service;
  service.line = fit_serving_overhead(measured);
  service.outside = outside.value_or(Seconds{});
  if (alone.size() > 1) fit_slowdown(service, measured, alone);
  if (!service.times.empty()) return service;
  if (!service.line || service.line->error > kLineError) service.times = table_of(measured);
  return service;
}

std::string serving_layer(const MeasuredService& service, const std::string& from) {
  std::string out = fmt::format(
      "# A layer over a scenario (--layer): what {} has measured.\nserving:\n  stack: {}\n",
      printable(from), kMeasuredStack);
  const auto us = [](Seconds t) { return fmt::format("{:.1f} us", t.count() * 1e6); };
  std::vector<std::string> overhead;
  if (service.times.empty() && service.line) {
    overhead.push_back("batch: " + us(service.line->batch));
    overhead.push_back("request: " + us(service.line->request));
  }
  if (service.outside.count() > 0) overhead.push_back("latency: " + us(service.outside));
  if (!overhead.empty()) out += fmt::format("  overhead: {{{}}}\n", fmt::join(overhead, ", "));
  if (service.times.empty()) return out;
  std::vector<std::string> times;
  for (const auto& [size, time] : service.times)
    times.push_back(fmt::format("{:.4g}: {}", size, us(time)));
  return out + fmt::format("  batch: {{times: {{{}}}}}\n", fmt::join(times, ", "));
}

}  // namespace reckon
