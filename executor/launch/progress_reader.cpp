#include "executor/launch/progress_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "sim/base/text/metric_line.h"
#include "sim/base/unit_text.h"

namespace reckon {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kNoNumbers[] = {"NaN", "-Infinity", "Infinity"};

/// "train.loss": as one key, else as keys of nested objects.
const Json* find(const Json& object, const std::string& key) {
  if (!object.is_object()) return nullptr;
  if (const auto at = object.find(key); at != object.end()) return &*at;
  const std::size_t dot = key.find('.');
  if (dot == std::string::npos) return nullptr;
  const auto part = object.find(key.substr(0, dot));
  return part != object.end() ? find(*part, key.substr(dot + 1)) : nullptr;
}

/// By what a program calls it.
const std::string& name_of(const ProgressKeys& keys, const std::string& name) {
  const auto given = keys.find(name);
  return given != keys.end() ? given->second : name;
}

/// Python writes what is no number as NaN, Infinity and -Infinity, which JSON has no words for.
Json parse_python(std::string_view text) {
  std::string plain;
  bool in_string = false;
  for (std::size_t k = 0; k < text.size(); ++k) {
    const std::string_view rest = text.substr(k);
    if (in_string && text[k] == '\\' && rest.size() > 1) {
      plain += text[k++];
    } else if (text[k] == '"') {
      in_string = !in_string;
    } else if (!in_string) {
      const auto word =
          std::ranges::find_if(kNoNumbers, [&](std::string_view w) { return rest.starts_with(w); });
      if (word != std::end(kNoNumbers)) {
        plain += "null";
        k += word->size() - 1;
        continue;
      }
    }
    plain += text[k];
  }
  return Json::parse(plain, nullptr, false);
}

LogProgress from_json(const Json& object, const ProgressKeys& keys) {
  LogProgress found;
  for (const std::string_view known : kProgressNames) {
    const std::string name(known);
    const Json* value = find(object, name_of(keys, name));
    if (value == nullptr) continue;
    if (value->is_number()) keep_progress(found, name, fmt::format("{}", value->get<double>()));
    if (value->is_string()) keep_progress(found, name, value->get<std::string>());
  }
  return found;
}

/// The largest value of each series of the page, labels left out.
std::map<std::string, double, std::less<>> series_of(std::string_view page) {
  std::map<std::string, double, std::less<>> series;
  while (!page.empty()) {
    const std::size_t end = std::min(page.find('\n'), page.size());
    const auto line = metric_line_in(page.substr(0, end));
    page.remove_prefix(std::min(end + 1, page.size()));
    if (!line) continue;
    const auto value = parse_number(line->value);
    if (!value || !std::isfinite(*value)) continue;
    const auto [at, is_new] = series.emplace(std::string(line->name), *value);
    if (!is_new) at->second = std::max(at->second, *value);
  }
  return series;
}

}  // namespace

tl::expected<ProgressReader, std::string> ProgressReader::from(ContainerMetrics metrics) {
  std::optional<ProgressPattern> pattern;
  if (!metrics.log.empty()) {
    auto given = ProgressPattern::from(metrics.log);
    if (!given) return tl::unexpected(given.error());
    pattern = std::move(*given);
  } else if (!metrics.json && !metrics.prometheus) {
    pattern = ProgressPattern();
  }
  return ProgressReader(std::move(metrics), std::move(pattern));
}

std::optional<LogProgress> ProgressReader::line(std::string_view text) const {
  const std::size_t begin = text.find_first_not_of(" \t");
  if (metrics_.json && begin != std::string_view::npos && text[begin] == '{') {
    const Json object = parse_python(text.substr(begin));
    if (object.is_object()) {
      const LogProgress found = from_json(object, *metrics_.json);
      return found.any() ? std::optional(found) : std::nullopt;
    }
  }
  return pattern_ ? pattern_->match(text) : std::nullopt;
}

std::optional<LogProgress> ProgressReader::page(std::string_view text) const {
  if (!metrics_.prometheus) return std::nullopt;
  const auto series = series_of(text);
  LogProgress found;
  for (const std::string_view known : kProgressNames) {
    const std::string name(known);
    const auto at = series.find(name_of(metrics_.prometheus->names, name));
    if (at != series.end()) keep_progress(found, name, fmt::format("{}", at->second));
  }
  return found.any() ? std::optional(found) : std::nullopt;
}

}  // namespace reckon
