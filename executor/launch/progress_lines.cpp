#include "executor/launch/progress_lines.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/base/unit_text.h"
#include "sim/scenario/container_metrics.h"

namespace reckon {
namespace {

struct Unnamed {
  std::string expression;
  std::vector<std::string> groups;
};

/// std::regex knows no named groups: "(?<name>" and "(?P<name>" become "(".
Unnamed without_names(const std::string& text) {
  Unnamed out;
  bool in_class = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    out.expression += text[i];
    if (text[i] == '\\' && i + 1 < text.size()) {
      out.expression += text[++i];
    } else if (text[i] == '[') {
      in_class = true;
    } else if (text[i] == ']') {
      in_class = false;
    } else if (text[i] == '(' && !in_class) {
      const std::string_view rest = std::string_view(text).substr(i + 1);
      const std::size_t mark = rest.starts_with("?P<") ? 3 : rest.starts_with("?<") ? 2 : 0;
      const bool named = mark > 0 && rest.size() > mark && rest[mark] != '=' && rest[mark] != '!';
      if (named) {
        const std::size_t end = rest.find('>', mark);
        out.groups.emplace_back(rest.substr(mark, end - mark));
        if (end != std::string_view::npos) i += end + 1;
      } else if (!rest.starts_with("?")) {
        out.groups.emplace_back();
      }
    }
  }
  return out;
}

/// "1,234.5" as 1234.5.
std::optional<double> number_of(std::string text) {
  std::erase(text, ',');
  const auto value = parse_number(text);
  return value && std::isfinite(*value) ? std::optional(*value) : std::nullopt;
}

// Each by itself, the surer one of a value first.
constexpr const char* kCommon[] = {
    R"(\b(?:global[_ ]?)?(?:steps?|iter(?:ation)?s?|batch(?:es)?)\b)"
    R"(['"]?[ \t]*[:=#]?[ \t]*\[?[ \t]*(?<step>\d+)\b)",
    R"((?:^|[|\s])(?<step>\d+)/\d+\s*\[)",
    R"((?<milliseconds>\d+(?:\.\d+)?)\s*ms/(?:it|step|iter|batch)\b)",
    R"((?<seconds>\d+(?:\.\d+)?)\s*s/(?:it|step|iter|batch)\b)",
    R"((?<steps_per_second>\d+(?:\.\d+)?)\s*(?:it|steps?|iters?|batch(?:es)?)/s)",
    R"(\bstep[ _]time\b['"]?[ \t]*[:=]?[ \t]*(?<milliseconds>\d+(?:\.\d+)?)\s*ms\b)",
    R"(\bstep(?:[ _]time\b)?['"]?[ \t]*[:=]?[ \t]*(?<seconds>\d+\.\d+)\s*s\b)",
    R"((?<samples_per_second>\d[\d,]*(?:\.\d+)?)\s*)"
    R"((?:samples|images|imgs?|examples|sequences|records)/s)"
    R"((?!(?:ec)?['"]?[ \t]*[:=]?[ \t]*\d))",
    R"(\b(?:samples|images|imgs?|examples|sequences)(?:/s(?:ec)?|[_ ]per[_ ]second))"
    R"(['"]?[ \t]*[:=]?[ \t]*(?<samples_per_second>\d[\d,]*(?:\.\d+)?))",
    R"(\bloss\b['"]?[ \t]*[:=]?[ \t]*(?<loss>[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?))",
    R"(\bcheckpoint[-_](?:step[-_]?)?(?<checkpoint>\d+)\b)",
    R"(\bsav(?:ed|ing)\b.*\bcheckpoint\b.*\bstep[ \t]*[:=#]?[ \t]*(?<checkpoint>\d+)\b)",
};

}  // namespace

void keep_progress(LogProgress& found, const std::string& name, const std::string& number) {
  const auto value = number_of(number);
  if (!value) return;
  const auto set = [&](auto& to, auto from) {
    if (!to) to = from;
  };
  constexpr double kMost = 1e15;
  const bool counts = *value >= 0 && *value < kMost;
  if (name == "step" && counts) set(found.step, std::int64_t(*value));
  if (name == "checkpoint" && counts) set(found.checkpoint, std::int64_t(*value));
  if (name == "seconds" && *value > 0) set(found.seconds, Seconds{*value});
  if (name == "milliseconds" && *value > 0) set(found.seconds, Seconds{*value / 1e3});
  if (name == "steps_per_second" && *value > 0) set(found.seconds, Seconds{1 / *value});
  if (name == "samples_per_second" && *value > 0) set(found.samples_per_second, *value);
  if (name == "loss") set(found.loss, *value);
}

ProgressPattern::ProgressPattern() {
  for (const char* text : kCommon) {
    Unnamed rule = without_names(text);
    rules_.push_back({std::regex(rule.expression, std::regex::ECMAScript | std::regex::icase),
                      std::move(rule.groups)});
  }
}

tl::expected<ProgressPattern, std::string> ProgressPattern::from(const std::string& expression) {
  Unnamed rule = without_names(expression);
  const std::vector<std::string> known(std::begin(kProgressNames), std::end(kProgressNames));
  bool progress = false;
  for (const std::string& group : rule.groups) {
    if (group.empty()) continue;
    if (std::ranges::find(known, group) == known.end())
      return tl::unexpected(fmt::format("no group is named '{}'{}; groups: {}", group,
                                        did_you_mean(group, known), fmt::join(known, ", ")));
    progress = progress || (group != "loss" && group != "checkpoint");
  }
  if (!progress)
    return tl::unexpected(
        std::string("it has no group that tells progress, such as (?<step>[0-9]+)"));
  try {
    ProgressPattern pattern;
    pattern.rules_.clear();
    pattern.rules_.push_back({std::regex(rule.expression), std::move(rule.groups)});
    return pattern;
  } catch (const std::regex_error& e) {
    return tl::unexpected(std::string("it is no regular expression: ") + e.what());
  }
}

std::optional<LogProgress> ProgressPattern::match(std::string_view line) const {
  constexpr std::size_t kLongest = 2000;
  if (line.size() > kLongest) line.remove_prefix(line.size() - kLongest);
  const std::string text(line);
  LogProgress found;
  for (const Rule& rule : rules_) {
    std::smatch match;
    if (!std::regex_search(text, match, rule.expression)) continue;
    for (std::size_t k = 0; k < rule.groups.size(); ++k)
      if (!rule.groups[k].empty() && match[k + 1].matched)
        keep_progress(found, rule.groups[k], match[k + 1].str());
  }
  return found.any() ? std::optional(found) : std::nullopt;
}

}  // namespace reckon
