#include "sim/scenario/resolve/container_metrics.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/base/diagnostic.h"
#include "sim/base/unit_text.h"

namespace reckon {
namespace {

/// Parted by commas and white space.
std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  std::string word;
  for (const char c : text) {
    if (c != ' ' && c != ',' && c != '\n' && c != '\t') {
      word += c;
    } else if (!word.empty()) {
      words.push_back(std::move(word));
      word.clear();
    }
  }
  if (!word.empty()) words.push_back(std::move(word));
  return words;
}

class MetricsReader {
 public:
  explicit MetricsReader(std::vector<MetricsMistake>& mistakes) : mistakes_(mistakes) {}

  ContainerMetrics read(const ContainerSpec& container) {
    ContainerMetrics metrics;
    for (const auto& [key, text] : container.metrics) {
      key_ = key;
      if (key == "log")
        metrics.log = text;
      else if (key == "json")
        metrics.json = keys_of(words_of(text));
      else if (key == "prometheus")
        metrics.prometheus = page_of(text);
      else
        unknown_key(key);
    }
    return metrics;
  }

 private:
  void mistake(std::string what, std::string hint = "") {
    mistakes_.push_back({key_, std::move(what), std::move(hint)});
  }

  void unknown_key(const std::string& key) {
    const std::vector<std::string> known{"log", "json", "prometheus"};
    mistake(fmt::format("unknown key '{}' in metrics{}", key, did_you_mean(key, known)),
            "log: a regular expression, json: names of keys, or prometheus: ':PORT/PATH names'");
  }

  ProgressKeys keys_of(const std::vector<std::string>& words) {
    const std::vector<std::string> known(std::begin(kProgressNames), std::end(kProgressNames));
    ProgressKeys keys;
    for (const std::string& word : words) {
      const std::size_t equals = word.find('=');
      const std::string name = word.substr(0, equals);
      if (std::ranges::find(known, name) == known.end())
        mistake(fmt::format("'{}' is no way to report progress{}", name, did_you_mean(name, known)),
                fmt::format("known: {}", fmt::join(known, ", ")));
      else if (equals == std::string::npos || equals + 1 == word.size())
        mistake(fmt::format("'{}' has no name behind it", name),
                fmt::format("example: {}=global_step", name));
      else
        keys[name] = word.substr(equals + 1);
    }
    return keys;
  }

  std::optional<PrometheusPage> page_of(const std::string& text) {
    std::vector<std::string> words = words_of(text);
    PrometheusPage page;
    const std::string place = words.empty() ? "" : words.front();
    const std::size_t slash = std::min(place.find('/'), place.size());
    const bool named = place.starts_with(':');
    const auto port = parse_integer(named ? place.substr(1, slash - 1) : "none");
    constexpr std::int64_t kMost = 65535;
    if (!port || *port < 1 || *port > kMost) {
      mistake(fmt::format("'{}' names no port of the program", place),
              "example: ':9090/metrics step=training_steps_total'");
      return std::nullopt;
    }
    page.port = int(*port);
    if (slash < place.size()) page.path = place.substr(slash);
    words.erase(words.begin());
    page.names = keys_of(words);
    return page;
  }

  std::vector<MetricsMistake>& mistakes_;
  std::string key_;
};

}  // namespace

ContainerMetrics container_metrics(const ContainerSpec& container,
                                   std::vector<MetricsMistake>& mistakes) {
  return MetricsReader(mistakes).read(container);
}

}  // namespace reckon
