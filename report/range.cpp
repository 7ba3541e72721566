#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/table.h"
#include "sim/base/printed_currency.h"
#include "sim/base/unit_text.h"

namespace reckon {
namespace {

constexpr double kDollar = 1;

/// Decimals that show three significant digits of `value`.
int decimals_for(double value) {
  const double size = std::abs(value);
  if (!(size > 0) || size >= 100) return 0;
  if (size >= 10) return 1;
  return size >= 1 ? 2 : 3;
}

std::string with_thousands(double value, int decimals) {
  if (!std::isfinite(value)) return "never";
  std::string text = fmt::format("{:.{}f}", value, decimals);
  const std::size_t point = std::min(text.find('.'), text.size());
  const std::size_t first = text[0] == '-' ? 1 : 0;
  for (std::size_t at = point; at > first + 3; at -= 3) text.insert(at - 3, ",");
  return text;
}

std::string range(const Quantiles& q, double unit, const std::string& name) {
  const double scale = std::isfinite(q.p50) ? q.p50 : q.p5;
  const int decimals = decimals_for(scale / unit);
  const auto number = [&](double v) { return with_thousands(v / unit, decimals); };
  const std::string middle = std::isfinite(q.p50) ? number(q.p50) + " " + name : "never";
  return fmt::format("{} ({} .. {})", middle, number(q.p5), number(q.p95));
}

double size_of(const Quantiles& q) {
  double size = 0;
  for (const double v : {q.p5, q.p50, q.p95})
    if (std::isfinite(v)) size = std::max(size, std::abs(v));
  return size;
}

/// Decimals follow the largest of the three: a difference's middle is often near zero.
std::string signed_range(const Quantiles& q, double unit, const std::string& name) {
  const int decimals = decimals_for(size_of(q) / unit);
  const auto number = [&](double v) {
    const std::string size =
        std::isfinite(v) ? with_thousands(std::abs(v) / unit, decimals) : "infinite";
    return (v < 0 ? "-" : "+") + size;
  };
  return fmt::format("{} {} ({} .. {})", number(q.p50), name, number(q.p5), number(q.p95));
}

}  // namespace

TimeUnit time_unit(double seconds) {
  if (seconds < 0.12) return {1e-3, "ms"};
  if (seconds < 120) return {1, "s"};
  if (seconds < 2 * 3600) return {60, "min"};
  if (seconds < 100 * 3600) return {3600, "h"};
  return {86400, "d"};
}

std::string time_difference(const Quantiles& seconds) {
  const auto [unit, name] = time_unit(size_of(seconds));
  return signed_range(seconds, unit, name);
}

std::string usd_difference(const Quantiles& usd) {
  return signed_range(usd, kDollar / in_printed_currency(kDollar), printed_currency().code);
}

std::string time_range(const Quantiles& seconds) {
  const double scale = std::isfinite(seconds.p50) ? seconds.p50 : seconds.p5;
  if (!std::isfinite(scale)) return "never";
  const auto [unit, name] = time_unit(scale);
  return range(seconds, unit, name);
}

std::string time_value(Seconds t) {
  const auto [unit, name] = time_unit(t.count());
  const double value = t.count() / unit;
  return with_thousands(value, decimals_for(value)) + " " + name;
}

std::string usd_range(const Quantiles& usd) {
  const Quantiles q{in_printed_currency(usd.mean), in_printed_currency(usd.p5),
                    in_printed_currency(usd.p50), in_printed_currency(usd.p95)};
  const std::string& code = printed_currency().code;
  if (std::abs(q.p50) >= 100 || q.p50 == 0) return range(q, 1, code);
  const auto number = [](double v) { return fmt::format("{:.2f}", v); };
  return fmt::format("{} {} ({} .. {})", number(q.p50), code, number(q.p5), number(q.p95));
}

std::string usd_value(double usd) {
  const double value = in_printed_currency(usd);
  const bool whole = std::abs(value) >= 100 || value == 0;
  return with_thousands(value, whole ? 0 : 2) + " " + printed_currency().code;
}

std::string energy_range(const Quantiles& joules) {
  const double unit = joules.p50 >= 3.6e9 ? 3.6e9 : joules.p50 >= 3.6e6 ? 3.6e6 : 3600;
  return range(joules, unit, unit == 3.6e9 ? "MWh" : unit == 3.6e6 ? "kWh" : "Wh");
}

std::string mass_range(const Quantiles& grams) {
  const double unit = grams.p50 >= 1e6 ? 1e6 : grams.p50 >= 1e3 ? 1e3 : 1;
  return range(grams, unit, unit == 1e6 ? "t" : unit == 1e3 ? "kg" : "g");
}

std::string signed_duration(double seconds) {
  return (seconds < 0 ? "-" : "+") + format_duration(Seconds{std::abs(seconds)});
}

std::string signed_usd(double usd) {
  return (usd < 0 ? "-" : "+") + format_usd(Usd{std::abs(usd)});
}

std::string percent_range(const Quantiles& share) {
  const auto number = [](double v) { return fmt::format("{:.1f}", 100 * v); };
  return fmt::format("{} % ({} .. {})", number(share.p50), number(share.p5), number(share.p95));
}

std::string mfu_text(const StepEstimate& step) {
  return step.mfu > 0 ? ", MFU " + format_percent(step.mfu) : "";
}

const char* rate_unit(std::int64_t tokens_per_sample) {
  return tokens_per_sample > 0 ? "tokens/s" : "samples/s";
}

std::string rate_value(SamplesPerSecond rate, std::int64_t tokens_per_sample) {
  const double value = tokens_per_sample > 0 ? rate.v * double(tokens_per_sample) : rate.v;
  return with_thousands(value, decimals_for(value));
}

std::string rate_text(SamplesPerSecond rate, std::int64_t tokens_per_sample) {
  return rate_value(rate, tokens_per_sample) + " " + rate_unit(tokens_per_sample);
}

std::string throughput_text(const StepEstimate& step, int accelerators,
                            std::int64_t tokens_per_sample) {
  const SamplesPerSecond rate = step.samples_per_second;
  std::string text = fmt::format("{} on {} accelerator{}", rate_text(rate, tokens_per_sample),
                                 accelerators, accelerators == 1 ? "" : "s");
  if (tokens_per_sample > 0) {
    text += " (";
    if (accelerators > 1)
      text += rate_value(rate / double(accelerators), tokens_per_sample) + " each, ";
    text += rate_text(rate, 0) + ")";
  }
  return text + mfu_text(step);
}

std::string probability_text(double share, int n) {
  const double least = 100.0 / std::max(1, n);
  const int decimals = least < 0.1 ? 2 : 1;
  if (share <= 0) return fmt::format("< {:.{}f} %", std::min(least, 50.0), decimals);
  if (share >= 1) return fmt::format("> {:.{}f} %", std::max(100 - least, 50.0), decimals);
  return fmt::format("{:.1f} %", 100 * share);
}

}  // namespace reckon
