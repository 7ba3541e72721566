#pragma once
#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <set>
#include <utility>

#include "sim/scenario/artifact/json_kinds.h"

namespace reckon::artifact {

/// Where in the JSON: "plan.pools[2].name".
struct Where {
  const Where* above = nullptr;
  std::string_view key = {};
  std::size_t index = 0;
  std::string text() const {
    std::string path = above != nullptr ? above->text() : "";
    if (key.empty()) return above != nullptr ? fmt::format("{}[{}]", path, index) : path;
    return path.empty() ? std::string(key) : fmt::format("{}.{}", path, key);
  }
};

/// Reads values and keeps what is wrong with them; what is wrong stays at its default.
class Reader {
 public:
  explicit Reader(std::string file) : file_(std::move(file)) {}

  template <class T>
  void read(const Json& json, T& value, const Where& at);
  void wrong(const Where& at, std::string_view what) {
    constexpr std::size_t kMost = 20;  // a file of another program has as many as it has fields
    if (problems_.size() >= kMost) return;
    problems_.push_back({.at = {.file = file_},
                         .what = fmt::format("{}: {}", at.text(), what),
                         .hint = "write the file again from its scenario"});
  }
  Diagnostics take_problems() { return std::move(problems_); }

 private:
  template <class T>
  void read_integer(const Json& json, T& value, const Where& at);
  void read_number(const Json& json, double& value, const Where& at);
  template <class T>
  void read_fact(const Json& json, Fact<T>& fact, const Where& at);
  template <class List>
  void read_list(const Json& json, List& list, const Where& at);
  template <class Map>
  void read_map(const Json& json, Map& map, const Where& at);
  template <class... Ts>
  void read_variant(const Json& json, std::variant<Ts...>& value, const Where& at);
  template <class T>
  void read_fields(const Json& json, T& object, const Where& at);
  void read_model(const Json& json, ModelGraph& model, const Where& at);

  std::string file_;
  Diagnostics problems_;
};

template <class T>
void Reader::read_integer(const Json& json, T& value, const Where& at) {
  if (json.is_number_unsigned()) {
    const auto number = json.get<std::uint64_t>();
    if (std::in_range<T>(number)) return void(value = static_cast<T>(number));
  } else if (json.is_number_integer()) {
    const auto number = json.get<std::int64_t>();
    if (std::in_range<T>(number)) return void(value = static_cast<T>(number));
  }
  wrong(at, "no whole number in its range");
}

template <class T>
void Reader::read_fact(const Json& json, Fact<T>& fact, const Where& at) {
  constexpr std::size_t kShort = 2, kLong = 5;
  if (!json.is_array() || (json.size() != kShort && json.size() != kLong))
    return wrong(at, "no number with its source");
  read(json.front(), fact.value, at);
  fact.low = fact.high = fact.value;
  if (json.size() == kLong) {
    read(json[1], fact.low, at);
    read(json[2], fact.high, at);
    read(json[3], fact.assumed, at);
  }
  read(json.back(), fact.source, at);
}

template <class List>
void Reader::read_list(const Json& json, List& list, const Where& at) {
  if (!json.is_array()) return wrong(at, "no list");
  if constexpr (kIs<List, std::vector>)
    list.resize(json.size());
  else if (json.size() != list.size())
    return wrong(at, fmt::format("{} items, not {}", json.size(), list.size()));
  for (std::size_t k = 0; k < list.size(); ++k)
    read(json[k], list[k], Where{.above = &at, .index = k});
}

template <class Map>
void Reader::read_map(const Json& json, Map& map, const Where& at) {
  if (!json.is_object()) return wrong(at, "no map");
  for (const auto& [key, value] : json.items())
    read(value, map[key], Where{.above = &at, .key = key});
}

template <class... Ts>
void Reader::read_variant(const Json& json, std::variant<Ts...>& value, const Where& at) {
  if (!json.is_array() || json.size() != 2 || !json[0].is_string())
    return wrong(at, "no kind with its fields");
  const auto& word = json[0].get_ref<const std::string&>();
  const auto take = [&]<class T>(std::type_identity<T> type) {
    if (word_of_alternative(type) != word) return false;
    read(json[1], value.template emplace<T>(), at);
    return true;
  };
  if (!(take(std::type_identity<Ts>{}) || ...)) wrong(at, fmt::format("unknown kind '{}'", word));
}

template <class T>
void Reader::read_fields(const Json& json, T& object, const Where& at) {
  if (!json.is_object()) return wrong(at, "no map of fields");
  std::set<std::string_view> known;
  each_field(object, [&](const char* name, auto& field) {
    known.insert(name);
    const Where here{.above = &at, .key = name};
    const auto found = json.find(name);
    if (found == json.end()) return wrong(here, "the field is missing");
    read(*found, field, here);
  });
  for (const auto& [key, value] : json.items())
    if (!known.contains(key)) wrong(Where{.above = &at, .key = key}, "unknown field");
}

template <class T>
void Reader::read(const Json& json, T& value, const Where& at) {
  if constexpr (std::is_same_v<T, bool>) {
    if (json.is_boolean())
      value = json.get<bool>();
    else
      wrong(at, "neither true nor false");
  } else if constexpr (std::is_integral_v<T>) {
    read_integer(json, value, at);
  } else if constexpr (std::is_same_v<T, double>) {
    read_number(json, value, at);
  } else if constexpr (std::is_same_v<T, std::string>) {
    if (json.is_string())
      value = json.get<std::string>();
    else
      wrong(at, "no text");
  } else if constexpr (std::is_same_v<T, std::monostate>) {
    if (!json.is_null()) wrong(at, "a value where there is none");
  } else if constexpr (std::is_same_v<T, Seconds>) {
    double seconds = 0;
    read_number(json, seconds, at);
    value = Seconds{seconds};
  } else if constexpr (std::is_same_v<T, std::chrono::sys_seconds>) {
    std::int64_t seconds = 0;
    read_integer(json, seconds, at);
    value = std::chrono::sys_seconds{std::chrono::seconds{seconds}};
  } else if constexpr (std::is_same_v<T, HourlyRate>) {
    read_integer(json, value.nano_usd_per_hour, at);
  } else if constexpr (std::is_same_v<T, ModelGraph>) {
    read_model(json, value, at);
  } else if constexpr (HasWords<T>) {
    if (!json.is_string() || !take_word(json.get_ref<const std::string&>(), value))
      wrong(at, "an unknown word");
  } else if constexpr (std::is_enum_v<T>) {
    std::underlying_type_t<T> number{};
    read_integer(json, number, at);
    value = static_cast<T>(number);
  } else if constexpr (HasFields<T>) {
    read_fields(json, value, at);
  } else if constexpr (kIs<T, Fact>) {
    read_fact(json, value, at);
  } else if constexpr (kIs<T, std::optional>) {
    if (json.is_null()) return void(value.reset());
    typename T::value_type made{};
    read(json, made, at);
    value = std::move(made);
  } else if constexpr (kIs<T, std::shared_ptr>) {
    if (json.is_null()) return void(value.reset());
    auto made = std::make_shared<std::remove_const_t<typename T::element_type>>();
    read(json, *made, at);
    value = std::move(made);
  } else if constexpr (kIs<T, std::vector> || kIsArray<T>) {
    read_list(json, value, at);
  } else if constexpr (kIs<T, std::map>) {
    read_map(json, value, at);
  } else if constexpr (kIs<T, std::variant>) {
    read_variant(json, value, at);
  } else {
    static_assert(IsQuantity<T>, "a type that an artifact does not know");
    read_number(json, value.v, at);
  }
}

}  // namespace reckon::artifact
