#include "sim/scenario/yaml/reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>

#include "sim/base/text/printable.h"
#include "sim/base/unit_text.h"
#include "sim/scenario/yaml/fields.h"

namespace reckon {
namespace {

/// Limits in the words that people write: "100,000" or "36500 d".
std::string limit_text(Form::Kind kind, double value) {
  switch (kind) {
    case Form::Kind::duration:
      return value < 86400 ? fmt::format("{}s", value) : fmt::format("{}d", value / 86400);
    case Form::Kind::fraction:
      return fmt::format("{}", value);
    case Form::Kind::bytes:
      return value < 1e12 ? fmt::format("{}B", value) : fmt::format("{}TB", value / 1e12);
    case Form::Kind::bandwidth:
      return value < 1e12 ? fmt::format("{}B/s", value) : fmt::format("{}TB/s", value / 1e12);
    default:
      return value >= 1e16 || (value > 0 && value < 1) ? fmt::format("{:g}", value)
                                                       : format_count(value);
  }
}

/// A whole number of any size, so that the limit is what is named for one that is too large.
Parsed<double> parse_whole(std::string_view text) {
  const auto number = parse_number(text);
  if (number && *number == std::floor(*number)) return number;
  return parse_integer(text).map([](std::int64_t v) { return double(v); });
}

Parsed<double> parse_number_as(Form::Kind kind, std::string_view text) {
  switch (kind) {
    case Form::Kind::whole:
      return parse_whole(text);
    case Form::Kind::count:
      return parse_count(text);
    case Form::Kind::fraction:
      return parse_fraction(text);
    case Form::Kind::duration:
      return parse_duration(text).map([](Seconds v) { return v.count(); });
    case Form::Kind::bytes:
      return parse_bytes(text).map([](Bytes v) { return v.v; });
    case Form::Kind::bandwidth:
      return parse_bandwidth(text).map([](BytesPerSecond v) { return v.v; });
    default:
      return parse_number(text);
  }
}

bool all_digits(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

std::optional<int> digits(std::string_view text, std::size_t begin, std::size_t count) {
  const std::string_view part = text.substr(begin, count);
  int value = 0;
  if (part.size() != count || !all_digits(part)) return std::nullopt;
  std::from_chars(part.data(), part.data() + part.size(), value);
  return value;
}

}  // namespace

std::optional<std::chrono::sys_days> parse_date(std::string_view text) {
  using namespace std::chrono;
  if (text.size() != 10 || text[4] != '-' || text[7] != '-') return std::nullopt;
  const auto y = digits(text, 0, 4), m = digits(text, 5, 2), d = digits(text, 8, 2);
  if (!y || !m || !d) return std::nullopt;
  const year_month_day date{year{*y}, month{unsigned(*m)}, day{unsigned(*d)}};
  if (!date.ok() || *y < 2000 || *y > 2100) return std::nullopt;
  return sys_days{date};
}

std::optional<std::chrono::sys_seconds> parse_utc_time(std::string_view text) {
  using namespace std::chrono;
  if (text.size() != 20 || text[10] != 'T' || text[13] != ':' || text[16] != ':' || text[19] != 'Z')
    return std::nullopt;
  const auto date = parse_date(text.substr(0, 10));
  const auto h = digits(text, 11, 2), m = digits(text, 14, 2), s = digits(text, 17, 2);
  if (!date || !h || !m || !s || *h > 23 || *m > 59 || *s > 59) return std::nullopt;
  return sys_seconds{*date} + hours{*h} + minutes{*m} + seconds{*s};
}

std::string scenario_name_mistake(std::string_view name) {
  constexpr std::size_t kLongest = 128;
  constexpr std::string_view kNotFirst = "-.: ";
  if (name.empty()) return "is empty";
  if (kNotFirst.find(name.front()) != kNotFirst.npos)
    return fmt::format("begins with '{}'", name.front());
  if (printable(name) != name) return "has a line break or a control character";
  return name.size() > kLongest ? fmt::format("has {} bytes", name.size()) : "";
}

SourcePlace place_of(const YamlNode::Entry& entry) {
  const bool block =
      entry.value.kind == YamlNode::Kind::list || entry.value.kind == YamlNode::Kind::map;
  return block && entry.value.tag.empty() ? entry.key_at : entry.value.at;
}

Reader::Scope::Scope(Reader& reader, std::string_view key, SourcePlace at, const FieldInfo* field)
    : reader_(reader),
      path_size_(reader.path_.size()),
      at_(std::move(reader.at_)),
      field_(reader.field_) {
  if (!reader.path_.empty() && !key.empty()) reader.path_ += '.';
  reader.path_ += shortened(key);
  reader.at_ = std::move(at);
  reader.field_ = field;
  reader.places_.set(reader.path_, reader.at_);
}

Reader::Scope::~Scope() {
  reader_.path_.resize(path_size_);
  reader_.at_ = std::move(at_);
  reader_.field_ = field_;
}

std::string Reader::subject() const { return path_.empty() ? "the scenario" : path_; }

std::string Reader::example() const {
  return field_ == nullptr ? "" : fmt::format("example: {}: {}", field_->key, field_->example);
}

void Reader::error(SourcePlace at, std::string what, std::string hint) {
  if (diagnostics_.size() < kMostErrors) {
    diagnostics_.push_back({Severity::error, std::move(at), std::move(what), std::move(hint)});
  } else if (diagnostics_.size() == kMostErrors) {
    diagnostics_.push_back({Severity::error, std::move(at),
                            fmt::format("more than {} mistakes", kMostErrors),
                            "the rest is not shown"});
  }
}

bool Reader::expect(const YamlNode& node, YamlNode::Kind kind) {
  constexpr std::string_view kNames[] = {"nothing", "one value", "a list", "a map of keys"};
  if (node.kind == YamlNode::Kind::null) {
    error(fmt::format("{} has no value", subject()));
    return false;
  }
  if (!node.tag.empty()) {
    error(node.at, fmt::format("{} cannot have the tag '{}'", subject(), shortened(node.tag)),
          "tags stand only at disruptions.preemption");
    return false;
  }
  if (node.kind != kind) {
    error(
        fmt::format("{} must be {}, not {}", subject(), kNames[std::size_t(kind)], describe(node)));
    return false;
  }
  return true;
}

bool Reader::not_blank(const YamlNode& node) {
  if (!expect(node, YamlNode::Kind::scalar)) return false;
  const bool blank = node.text.find_first_not_of(" \t\r\n") == std::string::npos;
  if (blank) error(fmt::format("{} is empty", subject()));
  return !blank;
}

std::optional<std::string> Reader::text(const YamlNode& node) {
  if (!not_blank(node)) return std::nullopt;
  if (printable(node.text) == node.text) return node.text;
  error(fmt::format("{} has a line break or a control character: '{}'", subject(),
                    shortened(node.text)));
  return std::nullopt;
}

std::optional<std::string> Reader::program_text(const YamlNode& node) {
  if (!not_blank(node)) return std::nullopt;
  if (node.text.find('\0') == std::string::npos) return node.text;
  error(fmt::format("{} has a NUL character, where a program's words end", subject()));
  return std::nullopt;
}

std::optional<std::string> Reader::name(const YamlNode& node) {
  constexpr std::size_t kLongest = 63;  // a DNS label: names of Kubernetes objects
  if (!expect(node, YamlNode::Kind::scalar)) return std::nullopt;
  const auto allowed = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_';
  };
  const std::string& text = node.text;
  if (text.empty() || text.size() > kLongest || text.front() == '-' || all_digits(text) ||
      !std::ranges::all_of(text, allowed)) {
    error(fmt::format("'{}' cannot be a {}", shortened(text),
                      field_ == nullptr ? "name" : field_->key),
          fmt::format("letters, digits, '-' and '_', at most {}, '-' not first, not digits only",
                      kLongest));
    return std::nullopt;
  }
  return text;
}

std::optional<bool> Reader::boolean(const YamlNode& node) {
  if (!expect(node, YamlNode::Kind::scalar)) return std::nullopt;
  if (node.text == "true") return true;
  if (node.text == "false") return false;
  error(fmt::format("{} must be true or false, not {}", subject(), describe(node)));
  return std::nullopt;
}

std::optional<double> Reader::number(const YamlNode& node, const Form& form) {
  if (!expect(node, YamlNode::Kind::scalar)) return std::nullopt;
  const Parsed<double> value = parse_number_as(form.kind, node.text);
  if (!value) {
    // The unit readers repeat the text: long ones are named by their beginning.
    const bool is_long = node.text.size() > shortened(node.text).size();
    error(is_long ? fmt::format("{}: '{}' cannot be read", subject(), shortened(node.text))
                  : fmt::format("{}: {}", subject(), value.error()));
    return std::nullopt;
  }
  const std::string written = shortened(node.text);
  if (form.above_low && *value <= form.low)
    error(fmt::format("{} is {}, but must be above {}", subject(), written,
                      limit_text(form.kind, form.low)));
  else if (*value < form.low)
    error(fmt::format("{} is {}, but must be at least {}", subject(), written,
                      limit_text(form.kind, form.low)));
  else if (*value > form.high)
    error(fmt::format("{} is {}, but must be at most {}", subject(), written,
                      limit_text(form.kind, form.high)));
  else
    return *value;
  return std::nullopt;
}

std::optional<std::size_t> Reader::word(const YamlNode& node,
                                        const std::vector<std::string>& words) {
  const auto allowed = [&] { return fmt::format("allowed: {}", fmt::join(words, ", ")); };
  if (node.kind == YamlNode::Kind::scalar && node.tag.empty()) {
    const auto found = std::ranges::find(words, node.text);
    if (found != words.end()) return std::size_t(found - words.begin());
    error(
        fmt::format("{} cannot be {}{}", subject(), describe(node), did_you_mean(node.text, words)),
        allowed());
  } else {
    expect(node, YamlNode::Kind::scalar);
  }
  return std::nullopt;
}

std::optional<MoneyText> Reader::price(const YamlNode& node) {
  constexpr double kDearest = 1e6;  // an hour, of one node
  if (!expect(node, YamlNode::Kind::scalar)) return std::nullopt;
  const Parsed<MoneyText> value = parse_price(shortened(node.text));
  if (!value) {
    error(fmt::format("{}: {}", subject(), value.error()));
    return std::nullopt;
  }
  if (value->amount < 0 || value->amount * 3600 > kDearest) {
    error(fmt::format("{} is {}, but must be between 0 and 1,000,000 an hour", subject(),
                      shortened(node.text)));
    return std::nullopt;
  }
  return *value;
}

std::optional<std::string> Reader::date(const YamlNode& node) {
  if (!expect(node, YamlNode::Kind::scalar)) return std::nullopt;
  if (parse_date(node.text)) return node.text;
  error(fmt::format("{}: {} is no date between 2000 and 2100 such as 2027-06-30", subject(),
                    describe(node)));
  return std::nullopt;
}

std::optional<std::chrono::sys_seconds> Reader::time(const YamlNode& node) {
  if (!expect(node, YamlNode::Kind::scalar)) return std::nullopt;
  if (const auto time = parse_utc_time(node.text)) return time;
  error(fmt::format("{}: {} is no time between 2000 and 2100 in UTC such as 2026-12-04T18:00:00Z",
                    subject(), describe(node)));
  return std::nullopt;
}

std::vector<std::string> Reader::texts(const YamlNode& node) {
  std::vector<std::string> out;
  each(node, [&](const YamlNode& item) {
    if (auto t = text(item)) out.push_back(std::move(*t));
  });
  return out;
}

std::vector<std::string> Reader::program_texts(const YamlNode& node) {
  std::vector<std::string> out;
  each(node, [&](const YamlNode& item) {
    if (auto t = program_text(item)) out.push_back(std::move(*t));
  });
  return out;
}

std::map<std::string, std::string> Reader::program_text_map(const YamlNode& node) {
  std::map<std::string, std::string> out;
  each_entry(node, [&](const std::string& key, const YamlNode& value) {
    if (!expect(value, YamlNode::Kind::scalar)) return;
    // Blanks are a value here.
    const bool blank = value.text.find_first_not_of(" \t\r\n") == std::string::npos;
    if (blank || program_text(value)) out.emplace(key, value.text);
  });
  return out;
}

void Reader::report_duplicate(const YamlNode& map, const YamlNode::Entry& entry) {
  const SourcePlace& first = map.find(entry.key)->key_at;
  error(entry.key_at,
        fmt::format("key '{}' is given twice{}", shortened(entry.key),
                    path_.empty() ? "" : " in " + path_),
        first.line > 0 ? fmt::format("the first is in line {}", first.line)
                       : fmt::format("the first is {}", first.file));
}

std::string Reader::item_key(const YamlNode& list, std::size_t index) const {
  const auto name_at = [&](std::size_t i) {
    const YamlNode::Entry* name = list.entries[i].value.find("name");
    return name != nullptr && name->value.kind == YamlNode::Kind::scalar ? name->value.text
                                                                         : std::string();
  };
  const std::string name = name_at(index);
  if (name.empty() || name.size() > 63) return std::to_string(index);
  // The first of a name has it; a list is short unless it is hostile, then the number will do.
  constexpr std::size_t kLookBack = 1000;
  if (index > kLookBack) return std::to_string(index);
  for (std::size_t i = 0; i < index; ++i)
    if (name_at(i) == name) return std::to_string(index);
  return name;
}

void check_one_of(Reader& reader, const YamlNode& map, std::span<const std::string_view> keys,
                  int least) {
  std::vector<std::string_view> given;
  const YamlNode::Entry* last = nullptr;
  for (const std::string_view key : keys)
    if (const auto* entry = map.find(key)) {
      given.push_back(key);
      last = entry;
    }
  const bool misspelt = std::ranges::any_of(keys, [&](auto key) { return reader.misspelt(key); });
  if (int(given.size()) < least && !misspelt)
    reader.error(fmt::format("{} needs one of {}", reader.subject(), fmt::join(keys, ", ")));
  if (given.size() > 1)
    reader.error(
        last->key_at, fmt::format("{} has {} at once", reader.subject(), fmt::join(given, " and ")),
        fmt::format("give {} one of {}", least > 0 ? "exactly" : "at most", fmt::join(keys, ", ")));
}

}  // namespace reckon
