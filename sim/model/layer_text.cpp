#include "sim/model/layer_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>

namespace reckon::layer_text {
namespace {

template <class Number>
std::optional<Number> parse(std::string_view text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::string shortened(std::string_view text) {
  constexpr std::size_t kMost = 60;
  return text.size() <= kMost ? std::string(text) : std::string(text.substr(0, kMost)) + "...";
}

}  // namespace

std::optional<Shape> parse_shape(std::string_view text) {
  Shape shape;
  while (true) {
    const std::size_t end = std::min(text.find('x'), text.size());
    const auto size = parse<std::int64_t>(text.substr(0, end));
    if (!size || *size < 1) return std::nullopt;
    shape.push_back(*size);
    if (end == text.size()) return shape;
    text.remove_prefix(end + 1);
  }
}

std::vector<std::string> split_names(std::string_view text) {
  std::vector<std::string> names;
  while (true) {
    const std::size_t comma = std::min(text.find(','), text.size());
    std::string_view name = text.substr(0, comma);
    while (!name.empty() && name.front() == ' ') name.remove_prefix(1);
    while (!name.empty() && name.back() == ' ') name.remove_suffix(1);
    names.emplace_back(name);
    if (comma == text.size()) return names;
    text.remove_prefix(comma + 1);
  }
}

const std::string* Attributes::find(const std::string& key) {
  used_.insert(key);
  const auto it = text_.find(key);
  return it == text_.end() ? nullptr : &it->second;
}

bool Attributes::known() const {
  return std::none_of(inputs_.begin(), inputs_.end(), [](const Shape& s) { return s.empty(); });
}

void Attributes::no_main() {
  const std::string* text = find(kind_);
  if (text && *text != "true" && !text->empty()) {
    mistake(kind_, fmt::format("{} has no value, not '{}'", kind_, shortened(*text)),
            fmt::format("{{{}: true}}", kind_));
  }
}

Shape Attributes::main_shape() {
  const std::string* text = find(kind_);
  if (const auto shape = text ? parse_shape(*text) : std::nullopt) return *shape;
  mistake(kind_, fmt::format("'{}' is no shape", text ? shortened(*text) : std::string()),
          "3x224x224, 1024");
  return {1};
}

std::int64_t Attributes::number(const std::string& key, std::optional<std::int64_t> otherwise) {
  const std::string* text = find(key);
  if (!text) {
    if (!otherwise) mistake("", fmt::format("{} of a {} is missing", key, kind_));
    return otherwise.value_or(1);
  }
  if (const auto value = parse<std::int64_t>(*text)) return *value;
  mistake(key, fmt::format("'{}' is not a whole number", shortened(*text)));
  return 1;
}

double Attributes::real(const std::string& key, std::optional<double> otherwise) {
  const std::string* text = find(key);
  if (!text) {
    if (!otherwise) mistake("", fmt::format("{} of a {} is missing", key, kind_));
    return otherwise.value_or(0);
  }
  const auto value = parse<double>(*text);
  if (value && std::isfinite(*value)) return *value;
  mistake(key, fmt::format("'{}' is not a number", shortened(*text)));
  return 0;
}

bool Attributes::flag(const std::string& key, bool otherwise) {
  const std::string* text = find(key);
  if (!text) return otherwise;
  if (*text != "true" && *text != "false")
    mistake(key, fmt::format("'{}' is neither true nor false", shortened(*text)));
  return *text == "true";
}

std::string Attributes::word(const std::string& key, const std::vector<std::string>& allowed) {
  const std::string* text = find(key);
  if (!text) {
    mistake("", fmt::format("{} of a {} is missing", key, kind_));
  } else if (std::find(allowed.begin(), allowed.end(), *text) != allowed.end()) {
    return *text;
  } else {
    const std::vector<std::string> words(allowed.begin(), allowed.end());
    mistake(key,
            fmt::format("unknown {} '{}'{}", key, shortened(*text), did_you_mean(*text, words)),
            fmt::format("allowed: {}", fmt::join(words, ", ")));
  }
  return std::string(*allowed.begin());
}

std::pair<std::int64_t, std::int64_t> Attributes::pair(const std::string& key,
                                                       std::int64_t otherwise) {
  const std::string* text = find(key);
  if (!text) return {otherwise, otherwise};
  const std::size_t cross = std::min(text->find('x'), text->size());
  const auto height = parse<std::int64_t>(std::string_view(*text).substr(0, cross));
  const auto width = cross == text->size()
                         ? height
                         : parse<std::int64_t>(std::string_view(*text).substr(cross + 1));
  if (height && width) return {*height, *width};
  mistake(key, fmt::format("'{}' is no size such as 3 or 1x7", shortened(*text)));
  return {otherwise, otherwise};
}

}  // namespace reckon::layer_text
