#include "exchange/foreign/snapshot/slurm/words.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>

namespace reckon {
namespace {

constexpr std::int64_t kMostSlurmGpus = 1'000'000, kMostSlurmMinutes = 52'560'000;
constexpr std::size_t kMostHosts = 100'000;

std::optional<std::int64_t> number_of(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < 0) return std::nullopt;
  return value;
}

/// Pieces between commas that stand in no bracket.
std::vector<std::string_view> outer_pieces(std::string_view text) {
  std::vector<std::string_view> pieces;
  int depth = 0;
  std::size_t from = 0;
  for (std::size_t k = 0; k <= text.size(); ++k) {
    if (k == text.size() || (text[k] == ',' && depth == 0)) {
      if (k > from) pieces.push_back(text.substr(from, k - from));
      from = k + 1;
    } else if (text[k] == '[' || text[k] == '(') {
      ++depth;
    } else if (text[k] == ']' || text[k] == ')') {
      --depth;
    }
  }
  return pieces;
}

/// "01-03,7" -> 01, 02, 03, 7, each behind what stands in `heads` and before what follows.
bool expand_range(std::string_view range, std::vector<std::string>& numbers) {
  const auto dash = range.find('-');
  const std::string_view low = range.substr(0, dash);
  const std::string_view high = dash == std::string_view::npos ? low : range.substr(dash + 1);
  const auto first = number_of(low), last = number_of(high);
  if (!first || !last || *last < *first || *last - *first >= std::int64_t(kMostHosts)) return false;
  for (std::int64_t k = *first; k <= *last; ++k)
    numbers.push_back(fmt::format("{:0{}}", k, low.size()));
  return true;
}

bool expand_hosts(std::string_view piece, std::vector<std::string>& hosts) {
  const auto open = piece.find('[');
  if (open == std::string_view::npos) {
    hosts.emplace_back(piece);
    return hosts.size() <= kMostHosts;
  }
  const auto close = piece.find(']', open);
  if (close == std::string_view::npos) return false;
  std::vector<std::string> numbers, tails;
  for (const std::string_view range : outer_pieces(piece.substr(open + 1, close - open - 1)))
    if (!expand_range(range, numbers)) return false;
  if (!expand_hosts(piece.substr(close + 1), tails)) return false;
  if (hosts.size() + numbers.size() * tails.size() > kMostHosts) return false;
  for (const std::string& number : numbers)
    for (const std::string& tail : tails)
      hosts.push_back(std::string(piece.substr(0, open)) + number + tail);
  return true;
}

}  // namespace

std::optional<SlurmGpus> slurm_gpus(std::string_view gres) {
  SlurmGpus typed, all;
  for (std::string_view entry : outer_pieces(gres)) {
    entry = entry.substr(0, entry.find('('));
    for (const std::string_view prefix : {"gres:", "gres/"})
      if (entry.starts_with(prefix)) entry.remove_prefix(prefix.size());
    if (!entry.starts_with("gpu") || (entry.size() > 3 && entry[3] != ':' && entry[3] != '='))
      continue;
    entry.remove_prefix(std::min<std::size_t>(entry.size(), 4));
    const auto cut = entry.find_last_of(":=");
    const std::string_view last = cut == std::string_view::npos ? entry : entry.substr(cut + 1);
    std::string_view type = cut == std::string_view::npos ? "" : entry.substr(0, cut);
    std::int64_t count = 1;
    if (const auto said = number_of(last))
      count = *said;
    else if (!last.empty() && std::isalpha(static_cast<unsigned char>(last.front())) != 0)
      type = entry;  // "gpu:a100": one of it
    else if (!last.empty())
      return std::nullopt;
    if (count > kMostSlurmGpus) return std::nullopt;
    SlurmGpus& sum = type.empty() ? all : typed;
    sum.count += static_cast<int>(count);
    if (!type.empty()) sum.type = type;
  }
  // A list of TRES tells the sum and the types.
  return SlurmGpus{all.count > 0 ? std::max(all.count, typed.count) : typed.count, typed.type};
}

std::optional<std::vector<std::string>> slurm_hosts(std::string_view list) {
  std::vector<std::string> hosts;
  for (const std::string_view piece : outer_pieces(list))
    if (!expand_hosts(piece, hosts)) return std::nullopt;
  return hosts;
}

std::optional<std::int64_t> slurm_time(std::string_view text) {
  std::int64_t days = 0;
  const auto dash = text.find('-');
  if (dash != std::string_view::npos) {
    const auto count = number_of(text.substr(0, dash));
    if (!count || *count > kMostSlurmMinutes) return std::nullopt;
    days = *count;
    text.remove_prefix(dash + 1);
  }
  std::vector<std::int64_t> parts;
  for (std::size_t from = 0; from <= text.size();) {
    const auto colon = std::min(text.find(':', from), text.size());
    const auto part = number_of(text.substr(from, colon - from));
    if (!part || *part > kMostSlurmMinutes) return std::nullopt;
    parts.push_back(*part);
    from = colon + 1;
  }
  if (parts.empty() || parts.size() > 3) return std::nullopt;
  // With days the first is hours, else one is minutes and two are minutes and seconds.
  if (dash != std::string_view::npos)
    parts.resize(3);
  else if (parts.size() == 1)
    parts = {0, parts[0], 0};
  else if (parts.size() == 2)
    parts.insert(parts.begin(), 0);
  return days * 86400 + parts[0] * 3600 + parts[1] * 60 + parts[2];
}

bool slurm_node_is_up(std::string_view state) {
  std::string upper(state);
  for (char& c : upper) c = char(std::toupper(static_cast<unsigned char>(c)));
  constexpr std::array kDown{"DOWN", "DRAIN", "FAIL",    "MAINT",  "NO_RESPOND", "NOT_RESPONDING",
                             "*",    "INVAL", "UNKNOWN", "FUTURE", "ERROR",      "BLOCKED"};
  if (upper.find("POWERED_DOWN") != std::string::npos) return true;  // it is woken for a job
  return std::none_of(kDown.begin(), kDown.end(),
                      [&](const char* word) { return upper.find(word) != std::string::npos; });
}

SlurmJobState slurm_job_state(std::string_view state) {
  constexpr std::array<std::string_view, 2> kWaits{"PENDING", "PD"};
  constexpr std::array<std::string_view, 10> kRuns{
      "RUNNING", "R", "CONFIGURING", "CF", "COMPLETING", "CG", "SUSPENDED", "S", "STOPPED", "ST"};
  if (std::ranges::find(kWaits, state) != kWaits.end()) return SlurmJobState::waits;
  return std::ranges::find(kRuns, state) != kRuns.end() ? SlurmJobState::runs
                                                        : SlurmJobState::other;
}

bool slurm_holds_back(std::string_view reason) {
  constexpr std::array<std::string_view, 8> kReasons{"JobHeldUser",
                                                     "JobHeldAdmin",
                                                     "Dependency",
                                                     "DependencyNeverSatisfied",
                                                     "BeginTime",
                                                     "JobArrayTaskLimit",
                                                     "launch failed requeued held",
                                                     "PartitionDown"};
  return std::ranges::find(kReasons, reason) != kReasons.end();
}

}  // namespace reckon
