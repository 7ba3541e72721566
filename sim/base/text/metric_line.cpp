#include "sim/base/text/metric_line.h"

#include <algorithm>

namespace reckon {
namespace {

/// Of the labels behind an opening brace the closing one: no brace of a value. npos: none.
std::size_t end_of_labels(std::string_view line, std::size_t open) {
  bool quoted = false;
  for (std::size_t at = open + 1; at < line.size(); ++at) {
    if (quoted && line[at] == '\\')
      ++at;
    else if (line[at] == '"')
      quoted = !quoted;
    else if (!quoted && line[at] == '}')
      return at;
  }
  return std::string_view::npos;
}

}  // namespace

std::string_view MetricLine::label(std::string_view key) const {
  for (std::size_t at = labels.find(key); at != std::string_view::npos;
       at = labels.find(key, at + 1)) {
    const bool begins = at == 0 || labels[at - 1] == ',' || labels[at - 1] == ' ';
    const std::string_view rest = labels.substr(at + key.size());
    if (begins && rest.starts_with("=\"")) return rest.substr(2, rest.find('"', 2) - 2);
  }
  return {};
}

std::optional<MetricLine> metric_line_in(std::string_view line) {
  const std::size_t name_end = line.find_first_of("{ \t");
  if (line.starts_with('#') || name_end == std::string_view::npos) return std::nullopt;
  MetricLine found{line.substr(0, name_end), {}, {}};
  std::size_t behind = name_end;
  if (line[name_end] == '{') {
    const std::size_t close = end_of_labels(line, name_end);
    if (close == std::string_view::npos) return std::nullopt;
    found.labels = line.substr(name_end + 1, close - name_end - 1);
    behind = close + 1;
  }
  const std::size_t begin = std::min(line.find_first_not_of(" \t\r", behind), line.size());
  found.value = line.substr(begin, line.find_first_of(" \t\r", begin) - begin);
  if (found.value.empty()) return std::nullopt;
  return found;
}

}  // namespace reckon
