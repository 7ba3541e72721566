#include "exchange/huggingface/config_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace reckon {
namespace {

constexpr std::int64_t kLargest = std::int64_t{1} << 40;

std::string shown(const nlohmann::json& value) {
  constexpr std::size_t kMost = 40;
  // Texts of any bytes: what is no UTF-8 is replaced.
  std::string text = value.is_structured()
                         ? std::string(value.type_name())
                         : value.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
  if (text.size() > kMost) text = text.substr(0, kMost) + "...";
  return text;
}

}  // namespace

ConfigJson::ConfigJson(std::string_view text, std::string file)
    : source_(text), file_(std::move(file)) {
  try {
    json_ = nlohmann::json::parse(text);
  } catch (const nlohmann::json::exception& e) {
    const auto* parse = dynamic_cast<const nlohmann::json::parse_error*>(&e);
    mistakes_->push_back({.at = place_at(parse ? parse->byte : 0),
                          .what = "the file is no JSON",
                          .hint = "a config.json begins with { and is written by transformers"});
    json_ = nullptr;
    return;
  }
  if (!json_.is_object()) {
    mistakes_->push_back({.at = {file_, 1, 1},
                          .what = fmt::format("the file holds {}, no object", json_.type_name()),
                          .hint = "a config.json begins with {"});
  }
}

ConfigJson::ConfigJson(const ConfigJson& whole, const std::string& key, nlohmann::json json,
                       Diagnostics* mistakes)
    : source_(whole.source_),
      file_(whole.file_),
      section_(whole.section_ + key + "."),
      json_(std::move(json)),
      mistakes_(mistakes) {
  const std::size_t at = source_.find(fmt::format("\"{}\"", key), whole.begins_at_);
  begins_at_ = at == std::string_view::npos ? whole.begins_at_ : at;
}

ConfigJson ConfigJson::section(const std::string& key) {
  const nlohmann::json* value = find(key);
  if (value && !value->is_object()) wrong_type(key, *value, "an object");
  return {*this, key, value && value->is_object() ? *value : nlohmann::json(), mistakes_};
}

SourcePlace ConfigJson::place_at(std::size_t byte) const {
  if (byte == 0) return {file_, 0, 0};
  const std::string_view before = source_.substr(0, std::min(byte - 1, source_.size()));
  const std::size_t line = before.rfind('\n');
  const std::size_t column =
      line == std::string_view::npos ? before.size() : before.size() - line - 1;
  return {file_, 1 + static_cast<int>(std::count(before.begin(), before.end(), '\n')),
          1 + static_cast<int>(column)};
}

/// Where the quoted key stands first; the JSON library keeps no places.
SourcePlace ConfigJson::place_of(std::string_view key) const {
  const std::size_t at =
      key.empty() ? std::string_view::npos : source_.find(fmt::format("\"{}\"", key), begins_at_);
  return at == std::string_view::npos ? SourcePlace{file_, 0, 0} : place_at(at + 1);
}

void ConfigJson::mistake(const std::string& key, std::string what, std::string hint) {
  mistakes_->push_back({.at = place_of(key), .what = std::move(what), .hint = std::move(hint)});
}

void ConfigJson::wrong_type(const std::string& key, const nlohmann::json& value,
                            std::string_view wanted) {
  mistake(key, fmt::format("{}{} is {}, not {}", section_, key, shown(value), wanted));
}

const nlohmann::json* ConfigJson::find(const std::string& key) const {
  if (!json_.is_object()) return nullptr;
  const auto it = json_.find(key);
  return it == json_.end() || it->is_null() ? nullptr : &*it;
}

std::int64_t ConfigJson::number(const std::string& key, std::optional<std::int64_t> otherwise,
                                std::int64_t least) {
  const nlohmann::json* value = find(key);
  if (!value) {
    if (!otherwise) mistake("", fmt::format("key '{}{}' is missing", section_, key));
    return otherwise.value_or(least);
  }
  const bool fits = value->is_number_unsigned()
                        ? value->get<std::uint64_t>() <= std::uint64_t{kLargest}
                        : value->is_number_integer();
  if (!fits) {
    wrong_type(key, *value, "a whole number below 2^40");
    return least;
  }
  const std::int64_t n = value->get<std::int64_t>();
  if (n >= least) return n;
  mistake(key, fmt::format("{}{} is {}", section_, key, n), fmt::format("the least is {}", least));
  return least;
}

double ConfigJson::real(const std::string& key, double otherwise) {
  const nlohmann::json* value = find(key);
  if (!value) return otherwise;
  if (value->is_number() && std::isfinite(value->get<double>())) return value->get<double>();
  wrong_type(key, *value, "a number");
  return otherwise;
}

bool ConfigJson::flag(const std::string& key, bool otherwise) {
  const nlohmann::json* value = find(key);
  if (!value) return otherwise;
  if (value->is_boolean()) return value->get<bool>();
  wrong_type(key, *value, "true or false");
  return otherwise;
}

std::string ConfigJson::text(const std::string& key, const std::string& otherwise) {
  const nlohmann::json* value = find(key);
  if (!value) return otherwise;
  if (value->is_string()) return value->get<std::string>();
  wrong_type(key, *value, "a text");
  return otherwise;
}

ActivationKind ConfigJson::activation(const std::string& key, const std::string& otherwise) {
  // transformers/activations.py, ACT2FN: the GELUs differ in how they approximate.
  const std::string name = text(key, otherwise);
  if (name.starts_with("gelu") || name == "quick_gelu") return ActivationKind::gelu;
  if (name == "silu" || name == "swish") return ActivationKind::silu;
  if (name == "relu") return ActivationKind::relu;
  if (name == "tanh") return ActivationKind::tanh;
  mistake(key, fmt::format("{} '{}' is not covered", key, name.substr(0, 40)),
          "covered are gelu and its approximations, silu, relu, tanh");
  return ActivationKind::gelu;
}

std::optional<std::size_t> ConfigJson::entries(const std::string& key) {
  const nlohmann::json* value = find(key);
  if (!value) return std::nullopt;
  if (value->is_structured()) return value->size();
  wrong_type(key, *value, "a list or an object");
  return std::nullopt;
}

std::string ConfigJson::first_text(const std::string& key) {
  const nlohmann::json* value = find(key);
  if (!value || !value->is_array() || value->empty() || !value->front().is_string()) return {};
  return value->front().get<std::string>();
}

std::vector<std::string> ConfigJson::texts(const std::string& key) {
  const nlohmann::json* value = find(key);
  std::vector<std::string> out;
  if (!value) return out;
  const bool fits =
      value->is_array() && std::all_of(value->begin(), value->end(),
                                       [](const nlohmann::json& item) { return item.is_string(); });
  if (!fits) wrong_type(key, *value, "a list of texts");
  for (const auto& item : fits ? *value : nlohmann::json::array())
    out.push_back(item.get<std::string>());
  return out;
}

std::vector<std::int64_t> ConfigJson::numbers(const std::string& key) {
  const nlohmann::json* value = find(key);
  std::vector<std::int64_t> out;
  if (!value) return out;
  const bool fits =
      value->is_array() &&
      std::all_of(value->begin(), value->end(), [](const nlohmann::json& item) {
        return item.is_number_unsigned() && item.get<std::uint64_t>() <= std::uint64_t{kLargest};
      });
  if (!fits) wrong_type(key, *value, "a list of whole numbers");
  for (const auto& item : fits ? *value : nlohmann::json::array())
    out.push_back(item.get<std::int64_t>());
  return out;
}

}  // namespace reckon
