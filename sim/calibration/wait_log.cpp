#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "sim/base/csv.h"
#include "sim/base/unit_text.h"
#include "sim/calibration/step_log.h"

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

constexpr std::array<std::string_view, 3> kKinds{"provisioning", "reclaim", "restart"};

}  // namespace

bool is_nccl_tests(std::string_view text) {
  return text.find("busbw") != std::string_view::npos &&
         text.find("algbw") != std::string_view::npos;
}

Expected<std::vector<CollectiveSample>> parse_nccl_tests(std::string_view file,
                                                         std::string_view text) {
  std::vector<CollectiveSample> samples;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const auto words = words_of(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    // size count type redop root time algbw busbw ...; an all-reduce has an operation, and no root
    constexpr std::size_t kTime = 5, kLeast = 8;
    if (words.size() < kLeast || words[3] == "none" || words[4] != "-1") continue;
    const auto size = parse_number(words[0]), time = parse_number(words[kTime]);
    if (size && time && *size > 0 && *time > 0)
      samples.push_back({Bytes{*size}, Seconds{*time * 1e-6}});
  }
  if (samples.empty())
    return tl::unexpected(Diagnostics{{Severity::error,
                                       {std::string(file), 0, 0},
                                       "no all-reduce was measured",
                                       "of nccl-tests, all_reduce_perf is read"}});
  return samples;
}

bool is_waiting_csv(std::string_view text) {
  CsvReader reader(text, CsvReader::Comments::hash);
  std::vector<CsvField> row;
  return reader.next(row) && !row.empty() && row.front().text == "kind";
}

Expected<std::vector<WaitRecord>> parse_waiting_csv(std::string_view file, std::string_view text) {
  Diagnostics problems;
  const auto problem = [&](int line, std::string what, std::string hint) {
    problems.push_back(
        {Severity::error, {std::string(file), line, 0}, std::move(what), std::move(hint)});
  };
  CsvReader reader(text, CsvReader::Comments::hash);
  std::vector<CsvField> row;
  reader.next(row);
  std::map<std::string, std::size_t, std::less<>> columns;
  for (std::size_t k = 0; k < row.size(); ++k) columns.emplace(row[k].text, k);
  for (const char* name : {"kind", "seconds", "censored"})
    if (!columns.contains(name))
      problem(1, fmt::format("the column '{}' is missing", name),
              "the header is kind,seconds,censored or kind,seconds,censored,pool");
  if (!problems.empty()) return tl::unexpected(std::move(problems));
  std::vector<WaitRecord> records;
  while (reader.next(row)) {
    const int line = row.front().line;
    const auto cell = [&](const char* name) {
      const auto at = columns.find(name);
      return at == columns.end() || at->second >= row.size() ? std::string_view{}
                                                             : row[at->second].text;
    };
    const auto* const kind = std::find(kKinds.begin(), kKinds.end(), cell("kind"));
    const auto seconds = parse_number(cell("seconds"));
    const std::string_view censored = cell("censored");
    const bool yes = censored == "1" || censored == "yes" || censored == "true";
    if (kind == kKinds.end())
      problem(line, fmt::format("unknown kind '{}'", cell("kind")),
              fmt::format("kinds: {}", fmt::join(kKinds, ", ")));
    else if (!seconds || *seconds < 0)
      problem(line, fmt::format("'{}' is no number of seconds", cell("seconds")), "");
    else if (!yes && censored != "0" && censored != "no" && censored != "false" &&
             !censored.empty())
      problem(line, fmt::format("censored is 0 or 1, not '{}'", censored), "");
    else
      records.push_back({WaitRecord::Kind(kind - kKinds.begin()),
                         std::string(cell("pool")),
                         {Seconds{*seconds}, yes}});
  }
  if (!problems.empty()) return tl::unexpected(std::move(problems));
  return records;
}

}  // namespace reckon
