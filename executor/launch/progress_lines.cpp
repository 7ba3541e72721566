#include "executor/launch/progress_lines.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/base/unit_text.h"
#include "sim/scenario/resolve/container_metrics.h"

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

/// Without a terminal's colors [ECMA-48, "Select graphic rendition"], which stand before words.
std::string without_colors(std::string_view line) {
  std::string text;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line.substr(i, 2) == "\x1b[") {
      const std::size_t end = line.find_first_not_of("0123456789;", i + 2);
      if (end != std::string_view::npos && line[end] == 'm') {
        i = end;
        continue;
      }
    }
    text += line[i];
  }
  return text;
}

/// "1,234.5" as 1234.5.
std::optional<double> number_of(std::string text) {
  std::erase(text, ',');
  const auto value = parse_number(text);
  return value && std::isfinite(*value) ? std::optional(*value) : std::nullopt;
}

// Each by itself, the surer one of a value first.
constexpr const char* kCommon[] = {
    // MaxText numbers its steps from 0.
    R"(\bcompleted step[ \t]*:[ \t]*(?<index>\d+),[ \t]*seconds\b)",
    R"(\b(?:global[_ ]?)?(?:steps?|iter(?:ation)?s?|batch(?:es)?)\b)"
    R"(['"]?[ \t]*[:=#]?[ \t]*\[?[ \t]*(?<step>\d+)\b(?!\.\d|%))",
    R"((?:^|[|\s])(?<step>\d+)/(?<bar>\d+)\s*\[)",
    R"((?<milliseconds>\d+(?:\.\d+)?)\s*ms/(?:it|step|iter|batch)\b)",
    R"((?<seconds>\d+(?:\.\d+)?)\s*s/(?:it|step|iter|batch)\b)",
    R"((?<steps_per_second>\d+(?:\.\d+)?)\s*(?:it|steps?|iters?|batch(?:es)?)/s)",
    R"(\bstep[ _]time\b['"]?[ \t]*[:=]?[ \t]*(?<milliseconds>\d+(?:\.\d+)?)\s*ms\b)",
    // Megatron-LM and Megatron-DeepSpeed; MaxText; DeepSpeed: each with its sample in the tests.
    R"(\belapsed[ _]time[ _]per[ _]iteration[ _]\(?ms\)?)"
    R"([ \t]*[:=][ \t]*(?<milliseconds>\d+(?:\.\d+)?))",
    R"(\bcompleted step[ \t]*:[ \t]*\d+,[ \t]*seconds[ \t]*:[ \t]*(?<seconds>\d+(?:\.\d+)?))",
    R"(\bcurrsamplespersec[ \t]*=[ \t]*(?<samples_per_second>\d+(?:\.\d+)?))",
    R"(\bstep(?:[ _]time\b)?['"]?[ \t]*[:=]?[ \t]*(?<seconds>\d+\.\d+)\s*s\b)",
    R"((?<samples_per_second>\d[\d,]*(?:\.\d+)?)\s*)"
    R"((?:samples|images|imgs?|examples|sequences|records)/s)"
    R"((?!(?:ec)?['"]?[ \t]*[:=]?[ \t]*\d))",
    R"(\b(?:samples|images|imgs?|examples|sequences)(?:/s(?:ec)?|[_ ]per[_ ]second))"
    R"(['"]?[ \t]*[:=]?[ \t]*(?<samples_per_second>\d[\d,]*(?:\.\d+)?))",
    R"(\b(?:lm_|step_|train_)?loss\b['"]?)"
    R"([ \t]*[:=]?[ \t]*(?<loss>[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?))",
    R"(\bcheckpoint[-_](?:step[-_]?)?(?<checkpoint>\d+)\b)",
    R"(\bsav(?:ed|ing)\b.*\bcheckpoint\b.*\b(?:step|iteration)\b)"
    R"([ \t]*[:=#]?[ \t]*(?<checkpoint>\d+)\b)",
    R"(\bsaved\b.*\bglobal_step(?<checkpoint>\d+)\b)",
};

/// Is what follows `before` a number of steps, or a step of something else than training?
/// "Gradient Accumulation steps = 1", "max train steps: 500", "time per step 1".
bool is_no_step(const std::string& before) {
  static const std::regex kOther(
      R"(\b(?:total|num|number(?:[ \t]+of)?|max(?:imum)?|warm[-_ ]?up|accum\w*|logging)"
      R"(|save|eval\w*|valid\w*|test|every|per|remaining)[ \t_-]+(?:[a-z]+[ \t_]+)?$)",
      std::regex::ECMAScript | std::regex::icase);
  return std::regex_search(before, kOther);
}

/// A bar's description that says what is counted, and it is not steps of training.
bool is_other_bar(const std::string& before) {
  static const std::regex kOther(
      R"(\b(?:map|filter|cast|flatten|group|shuffl|pack|process|preprocess|token|download|upload)"
      R"(|fetch|extract|gener|load|read|resolv|save|saving|writ|creat|eval|valid|test|predict)"
      R"(|infer|sanity|warm|cache|caching)\w*[^|]*(?:\||:[ \t]*)[^|]*\|?[ \t]*$)",
      std::regex::ECMAScript | std::regex::icase);
  return std::regex_search(before, kOther);
}

/// The text up to where it speaks of checkpoints that are deleted or read.
std::string before_reading(const std::string& text) {
  static const std::regex kNotSaved(
      R"(\b(?:delete|deleting|remov|prun|resum|restore|restoring|continu)\w*)"
      R"(|\b(?:re)?load(?:s|ed|ing)?\b)",
      std::regex::ECMAScript | std::regex::icase);
  std::smatch match;
  return std::regex_search(text, match, kNotSaved) ? match.prefix().str() : text;
}

bool speaks_of_saving(const std::string& text) {
  static const std::regex kSaved(R"(\b(?:save|saving|writ|wrote|stor|dump|export)\w*)",
                                 std::regex::ECMAScript | std::regex::icase);
  return std::regex_search(text, kSaved);
}

bool speaks_of_resuming(const std::string& text) {
  static const std::regex kResumed(
      R"(\b(?:resum|restore|restoring|continu)\w*|\b(?:re)?load(?:s|ed|ing)?\b)",
      std::regex::ECMAScript | std::regex::icase);
  return std::regex_search(text, kResumed);
}

bool names(const std::vector<std::string>& groups, std::string_view name) {
  return std::ranges::find(groups, name) != groups.end();
}

void keep_groups(LogProgress& found, const std::smatch& match,
                 const std::vector<std::string>& groups) {
  for (std::size_t k = 0; k < groups.size(); ++k)
    if (!groups[k].empty() && match[k + 1].matched)
      keep_progress(found, groups[k], match[k + 1].str());
}

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
  if (name == "index" && counts) set(found.step, std::int64_t(*value) + 1);
  if (name == "bar" && counts) set(found.bar, std::int64_t(*value));
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
        std::string("it has no named group for progress, such as (?<step>[0-9]+)"));
  try {
    ProgressPattern pattern;
    pattern.rules_.clear();
    pattern.common_ = false;
    pattern.rules_.push_back({std::regex(rule.expression), std::move(rule.groups)});
    return pattern;
  } catch (const std::regex_error& e) {
    return tl::unexpected(std::string("it is no regular expression: ") + e.what());
  }
}

std::optional<LogProgress> ProgressPattern::match_common(const std::string& text) const {
  LogProgress found;
  const std::string written = before_reading(text);
  const bool reads = speaks_of_resuming(text);
  std::optional<std::int64_t> named;  // by a checkpoint that is read
  for (const Rule& rule : rules_) {
    const bool step = names(rule.groups, "step"), bar = names(rule.groups, "bar");
    if (step && found.step) continue;  // a bar's length would be that of another number
    const bool save = names(rule.groups, "checkpoint");
    const std::string& where = save && !reads ? written : text;
    for (std::sregex_iterator at(where.begin(), where.end(), rule.expression), end; at != end;
         ++at) {
      const std::string before = at->prefix().str();
      if (bar ? is_other_bar(before) : step && is_no_step(before)) continue;
      LogProgress one;
      keep_groups(one, *at, rule.groups);
      const bool saved =
          save && std::size_t(at->position()) < written.size() && speaks_of_saving(written);
      if (save && !saved) {
        if (!named) named = one.checkpoint;
        break;
      }
      keep_groups(found, *at, rule.groups);
      break;
    }
  }
  if (reads && !found.bar) found.resumed = found.step ? found.step : named;
  return found.any() ? std::optional(found) : std::nullopt;
}

std::optional<LogProgress> ProgressPattern::match(std::string_view line) const {
  constexpr std::size_t kLongest = 2000;
  if (line.size() > kLongest) line.remove_prefix(line.size() - kLongest);
  const std::string text = without_colors(line);
  if (common_) return match_common(text);
  LogProgress found;
  for (const Rule& rule : rules_) {
    std::smatch match;
    if (std::regex_search(text, match, rule.expression)) keep_groups(found, match, rule.groups);
  }
  if (found.step && speaks_of_resuming(text)) found.resumed = found.step;
  return found.any() ? std::optional(found) : std::nullopt;
}

}  // namespace reckon
