#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "sim/base/unit_text.h"
#include "sim/measurement/step_log.h"

namespace reckon {
namespace {

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  while (true) {
    const std::size_t begin = line.find_first_not_of(" \t\r");
    if (begin == std::string_view::npos) return words;
    line.remove_prefix(begin);
    const std::size_t end = std::min(line.find_first_of(" \t\r"), line.size());
    words.push_back(line.substr(0, end));
    line.remove_prefix(end);
  }
}

/// Columns of a row: size count type redop root, then four out of place and four in place.
constexpr std::size_t kType = 2, kOperation = 3, kRoot = 4, kTime = 5, kAlgorithm = 6, kBus = 7,
                      kInPlace = 9, kLeast = 8;

/// "# Collective test starting: all_reduce_perf"
std::string collective_in(std::string_view line) {
  constexpr std::string_view kStarting = "Collective test starting:";
  const std::size_t at = line.find(kStarting);
  if (at == line.npos) return "";
  const auto words = words_of(line.substr(at + kStarting.size()));
  if (words.empty()) return "";
  std::string_view name = words.front();
  if (name.ends_with("_perf")) name.remove_suffix(5);
  return std::string(name);
}

/// An all-reduce's bus bandwidth is 2 (n - 1) / n of its own, a reduce-scatter's half of that.
std::string collective_by(std::string_view operation, std::string_view root, double ratio) {
  if (operation == "none") return root == "-1" ? "all_gather" : "broadcast";
  if (root != "-1") return "reduce";
  return ratio > 1 - 1e-9 ? "all_reduce" : "reduce_scatter";
}
int ranks_by(std::string_view collective, double ratio) {
  const double each = collective == "all_reduce" ? ratio / 2 : ratio;
  if (!(each > 0) || !(each < 0.9999)) return 0;
  return static_cast<int>(std::lround(1 / (1 - each)));
}

}  // namespace

bool is_nccl_tests(std::string_view text) {
  return text.find("busbw") != std::string_view::npos &&
         text.find("algbw") != std::string_view::npos;
}

Expected<CollectiveLog> parse_nccl_tests(std::string_view file, std::string_view text) {
  CollectiveLog log;
  Diagnostics problems;
  double best = 0;  // of the bus bandwidth, at which the ratio has most digits
  for (int number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (log.collective.empty()) log.collective = collective_in(line);
    const auto words = words_of(line);
    if (words.size() < kLeast || words.front().starts_with('#') || !parse_integer(words[0]) ||
        !parse_integer(words[1]))
      continue;
    const auto size = parse_number(words[0]), time = parse_number(words[kTime]);
    constexpr double kMostBytes = 1e15, kMostTime = 1e12;  // bytes; microseconds
    if (!size || !time || !(*size >= 0 && *size <= kMostBytes) ||
        !(*time >= 0 && *time <= kMostTime)) {
      constexpr std::size_t kMost = 20;
      if (problems.size() < kMost)
        problems.push_back({Severity::error,
                            {std::string(file), number, 0},
                            fmt::format("'{}' is no time in microseconds", words[kTime]),
                            "columns: size, count, type, redop, root, time, algbw, busbw"});
      continue;
    }
    constexpr double kLeastTime = 1e-3;  // microseconds: below is no measurement
    if (*size == 0 || *time < kLeastTime) continue;
    CollectiveSample sample{Bytes{*size}, Seconds{*time * 1e-6}, {}, 0};
    if (words.size() > kInPlace)
      if (const auto in_place = parse_number(words[kInPlace]);
          in_place && *in_place >= kLeastTime && *in_place <= kMostTime) {
        sample.in_place = Seconds{*in_place * 1e-6};
        // Two values' standard deviation.
        sample.error = std::abs(std::log(sample.time / sample.in_place)) / std::sqrt(2.0);
      }
    const auto own = parse_number(words[kAlgorithm]), bus = parse_number(words[kBus]);
    if (own && bus && *own > 0 && *bus > best) {
      best = *bus;
      const std::string by = collective_by(words[kOperation], words[kRoot], *bus / *own);
      log.ranks = ranks_by(log.collective.empty() ? by : log.collective, *bus / *own);
      if (log.type.empty()) log.type = words[kType];
      if (log.collective.empty()) log.collective = by;
    }
    log.samples.push_back(sample);
  }
  if (problems.empty() && log.samples.empty())
    problems.push_back({Severity::error,
                        {std::string(file), 0, 0},
                        "no collective was measured",
                        "of nccl-tests the whole output is read, such as all_reduce_perf -b 8 -e "
                        "1G -f 2 > FILE"});
  if (!problems.empty()) return tl::unexpected(std::move(problems));
  return log;
}

CollectiveLine line_through(const std::vector<CollectiveSample>& samples) {
  // Weights 1 / time^2; the normal equations of a and b in t = a + b size.
  double w = 0, x = 0, xx = 0, y = 0, xy = 0;
  for (const CollectiveSample& s : samples) {
    const double t = s.time.count(), weight = 1 / (t * t);
    w += weight;
    x += weight * s.size.v;
    xx += weight * s.size.v * s.size.v;
    y += weight * t;
    xy += weight * s.size.v * t;
  }
  const double determinant = w * xx - x * x;
  CollectiveLine line;
  if (!(determinant > 0)) return line;
  const double slope = (w * xy - x * y) / determinant;
  line.latency = Seconds{std::max(0.0, (y - slope * x) / w)};
  if (slope > 0) line.bandwidth = BytesPerSecond{1 / slope};
  return line;
}

}  // namespace reckon
