#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
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

/// Where a row has what, as the header says. Without one they are those of the newest versions:
/// size count type redop root, then time algbw busbw #wrong out of place and in place. Older ones
/// have redop and root only where a collective has them.
struct Columns {
  std::size_t type = 2, operation = 3, root = 4, time = 5, in_place = 9, all = 13;
  std::size_t algorithm() const { return time + 1; }
  std::size_t bus() const { return time + 2; }
};
constexpr std::size_t kNone = 0;  // no column is there but the size
constexpr std::int64_t kMostRanks = 10'000'000;

std::optional<Columns> columns_in(std::string_view line) {
  auto words = words_of(line);
  if (words.empty() || words.front() != "#") return std::nullopt;
  words.erase(words.begin());
  const auto place_of = [&](std::string_view name, std::size_t from) {
    const auto at = std::find(words.begin() + std::ptrdiff_t(from), words.end(), name);
    return at == words.end() ? kNone : std::size_t(at - words.begin());
  };
  Columns c;
  c.time = place_of("time", 0);
  if (c.time == kNone || words.front() != "size" || place_of("algbw", c.time) != c.algorithm() ||
      place_of("busbw", c.time) != c.bus())
    return std::nullopt;
  c.type = place_of("type", 0);
  c.operation = place_of("redop", 0);
  c.root = place_of("root", 0);
  c.in_place = place_of("time", c.time + 1);
  c.all = words.size();
  return c;
}

/// Of this row: an operation that a collective has not (all-to-all) is printed as blanks.
Columns of_row(Columns c, const std::vector<std::string_view>& words) {
  if (c.operation == kNone || words.size() >= c.all || !parse_number(words[c.operation])) return c;
  c.operation = kNone;
  for (std::size_t* at : {&c.root, &c.time, &c.in_place})
    if (*at != kNone) --*at;
  return c;
}

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
std::string collective_by(const Columns& said, const Columns& row,
                          const std::vector<std::string_view>& words, double ratio) {
  const bool rooted = row.root != kNone && words[row.root] != "-1";
  if (row.operation == kNone && said.operation != kNone) return "alltoall";
  if (row.operation == kNone || words[row.operation] == "none")
    return rooted ? "broadcast" : "all_gather";
  if (rooted) return "reduce";
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
  Columns said;
  std::string named;  // by the program
  int listed = 0;     // by lines "#   Rank  0 Pid 4711 on HOST device  0"
  for (int number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (named.empty()) named = collective_in(line);
    if (const auto columns = columns_in(line)) said = *columns;
    const auto words = words_of(line);
    if (words.size() > 2 && words[0] == "#" && words[1] == "Rank")
      if (const auto rank = parse_integer(words[2]); rank && *rank >= 0 && *rank < kMostRanks)
        listed = std::max(listed, static_cast<int>(*rank) + 1);
    if (words.size() < 2 || !parse_integer(words[0]) || !parse_integer(words[1])) continue;
    const Columns at = words.size() > said.operation ? of_row(said, words) : said;
    if (words.size() <= at.bus()) continue;
    const auto size = parse_number(words[0]), time = parse_number(words[at.time]);
    constexpr double kMostBytes = 1e15, kMostTime = 1e12;  // bytes; microseconds
    if (!size || !time || !(*size >= 0 && *size <= kMostBytes) ||
        !(*time >= 0 && *time <= kMostTime)) {
      constexpr std::size_t kMost = 20;
      if (problems.size() < kMost)
        problems.push_back({Severity::error,
                            {std::string(file), number, 0},
                            fmt::format("'{}' is no time in microseconds", words[at.time]),
                            "columns: size, count, type, redop, root, time, algbw, busbw"});
      continue;
    }
    constexpr double kLeastTime = 1e-3;  // microseconds: below is no measurement
    if (*size == 0 || *time < kLeastTime) continue;
    CollectiveSample sample{Bytes{*size}, Seconds{*time * 1e-6}, {}, 0};
    if (at.in_place != kNone && words.size() > at.in_place)
      if (const auto in_place = parse_number(words[at.in_place]);
          in_place && *in_place >= kLeastTime && *in_place <= kMostTime) {
        sample.in_place = Seconds{*in_place * 1e-6};
        // Two values' standard deviation.
        sample.error = std::abs(std::log(sample.time / sample.in_place)) / std::sqrt(2.0);
      }
    const auto own = parse_number(words[at.algorithm()]), bus = parse_number(words[at.bus()]);
    if (own && bus && *own > 0 && *bus > best) {
      best = *bus;
      log.collective = named.empty() ? collective_by(said, at, words, *bus / *own) : named;
      log.ranks = ranks_by(log.collective, *bus / *own);
      if (log.type.empty() && at.type != kNone) log.type = words[at.type];
    }
    log.samples.push_back(sample);
  }
  if (log.collective.empty()) log.collective = named;  // where every bandwidth is printed as 0
  if (listed > 0) log.ranks = listed;
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
