#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "sim/base/text/csv.h"
#include "sim/base/unit_text.h"
#include "sim/measurement/step_log.h"

namespace reckon {
namespace {

constexpr std::array<std::string_view, 3> kKinds{"provisioning", "reclaim", "restart"};

}  // namespace

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
