#include "sim/measurement/step_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <regex>

#include "sim/base/text/csv.h"
#include "sim/base/unit_text.h"

namespace reckon {
namespace {

Diagnostic problem_at(std::string_view file, int line, std::string what, std::string hint = "") {
  return {Severity::error, {std::string(file), line, 0}, std::move(what), std::move(hint)};
}

struct LogColumn {
  std::string_view name;
  StepLog::Unit unit;
  double factor;  // to seconds, or samples a second
};
constexpr std::array<LogColumn, 10> kLogColumns{
    {{"step_seconds", StepLog::Unit::seconds, 1},
     {"step_time", StepLog::Unit::seconds, 1},
     {"step_time_s", StepLog::Unit::seconds, 1},
     {"seconds", StepLog::Unit::seconds, 1},
     {"step_ms", StepLog::Unit::seconds, 1e-3},
     {"step_time_ms", StepLog::Unit::seconds, 1e-3},
     {"milliseconds", StepLog::Unit::seconds, 1e-3},
     {"samples_per_second", StepLog::Unit::samples_per_second, 1},
     {"images_per_second", StepLog::Unit::samples_per_second, 1},
     {"examples_per_second", StepLog::Unit::samples_per_second, 1}}};

const LogColumn* column_named(std::string_view name) {
  const auto* found = std::find_if(kLogColumns.begin(), kLogColumns.end(),
                                   [&](const LogColumn& c) { return c.name == name; });
  return found == kLogColumns.end() ? nullptr : found;
}

std::string column_names() {
  std::vector<std::string_view> names;
  for (const LogColumn& c : kLogColumns) names.push_back(c.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

/// A regular expression without names, and the names of its groups.
struct Pattern {
  std::string plain;
  std::vector<std::string> names;  // by group, from 0; "" : has none
};

Pattern without_names(const std::string& pattern) {
  Pattern result;
  bool in_class = false;
  for (std::size_t k = 0; k < pattern.size(); ++k) {
    const char c = pattern[k];
    result.plain += c;
    if (c == '\\' && k + 1 < pattern.size()) {
      result.plain += pattern[++k];
      continue;
    }
    if (c == '[') in_class = true;
    if (c == ']') in_class = false;
    if (c != '(' || in_class) continue;
    const std::string_view rest = std::string_view(pattern).substr(k + 1);
    const std::size_t skip = rest.starts_with("?P<") ? 3 : rest.starts_with("?<") ? 2 : 0;
    const bool look_behind = skip == 2 && rest.size() > 2 && (rest[2] == '=' || rest[2] == '!');
    const std::size_t end = rest.find('>');
    if (skip > 0 && !look_behind && end != std::string_view::npos) {
      result.names.emplace_back(rest.substr(skip, end - skip));
      k += end + 1;
    } else if (!rest.starts_with("?")) {
      result.names.emplace_back();
    }
  }
  return result;
}

std::string_view next_line(std::string_view& text) {
  const std::size_t end = text.find('\n');
  std::string_view line = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

}  // namespace

std::vector<double> StepLog::seconds(double batch) const {
  std::vector<double> out;
  for (const double v : values) out.push_back(unit == Unit::seconds ? v : batch / v);
  return out;
}

Expected<StepLog> parse_step_csv(std::string_view file, std::string_view text) {
  CsvReader reader(text, CsvReader::Comments::hash);
  std::vector<CsvField> row;
  if (!reader.next(row))
    return tl::unexpected(Diagnostics{problem_at(file, 0, "the file is empty")});
  std::size_t at = row.size();
  for (std::size_t k = row.size(); k-- > 0;)
    if (column_named(row[k].text) != nullptr) at = k;
  if (at == row.size())
    return tl::unexpected(
        Diagnostics{problem_at(file, row.front().line, "no column says how long a step took",
                               "columns that do: " + column_names())});
  const LogColumn& column = *column_named(row[at].text);
  StepLog log{.unit = column.unit};
  Diagnostics problems;
  while (reader.next(row)) {
    const auto value = parse_number(at < row.size() ? row[at].text : std::string_view{});
    if (value && *value > 0)
      log.values.push_back(*value * column.factor);
    else
      problems.push_back(problem_at(
          file, row.front().line,
          fmt::format("'{}' is no positive number", at < row.size() ? row[at].text : "")));
  }
  if (!problems.empty()) return tl::unexpected(std::move(problems));
  return log;
}

Expected<StepLog> parse_pattern_log(std::string_view file, std::string_view text,
                                    const std::string& pattern) {
  const Pattern parts = without_names(pattern);
  const auto wrong = [&](std::string what, std::string hint) {
    return tl::unexpected(Diagnostics{problem_at(file, 0, std::move(what), std::move(hint))});
  };
  const auto group = std::find_if(parts.names.begin(), parts.names.end(),
                                  [](const auto& name) { return column_named(name) != nullptr; });
  if (group == parts.names.end())
    return wrong(
        "the pattern has no group for the time of a step",
        R"(such as 'step (?<step>\d+).* (?<seconds>[\d.]+) s'; groups: )" + column_names());
  const LogColumn& column = *column_named(*group);
  std::regex expression;
  try {
    expression = std::regex(parts.plain);
  } catch (const std::regex_error& error) {
    return wrong(fmt::format("the pattern is no regular expression: {}", error.what()), "");
  }
  StepLog log{.unit = column.unit};
  constexpr std::size_t kLongest = 4096;  // std::regex recurses: what is longer is no step's line
  while (!text.empty()) {
    const std::string_view line = next_line(text);
    std::match_results<std::string_view::const_iterator> found;
    if (line.size() > kLongest || !std::regex_search(line.begin(), line.end(), found, expression))
      continue;
    const auto value =
        parse_number(found[static_cast<std::size_t>(group - parts.names.begin()) + 1].str());
    if (value && *value > 0) log.values.push_back(*value * column.factor);
  }
  if (log.values.empty())
    return wrong("the pattern finds no step in the file", "try it with grep -E on a line of it");
  return log;
}

}  // namespace reckon
