#pragma once
#include <functional>
#include <string>

#include "sim/scenario/artifact/json_kinds.h"

// Changes every value that hangs on an object, one after the other, and puts each back.
namespace reckon::test {

using Changed = std::function<void(const std::string& where)>;

template <class T>
void change_each(T& value, const std::string& where, const Changed& changed);

template <class T>
void change_once(T& value, T other, const std::string& where, const Changed& changed) {
  std::swap(value, other);
  changed(where);
  std::swap(value, other);
}

template <class T>
void change_fact(Fact<T>& fact, const std::string& where, const Changed& changed) {
  change_each(fact.value, where + ".value", changed);
  change_each(fact.low, where + ".low", changed);
  change_each(fact.high, where + ".high", changed);
  change_each(fact.source, where + ".source", changed);
  change_each(fact.assumed, where + ".assumed", changed);
}

template <class T>
void change_optional(std::optional<T>& value, const std::string& where, const Changed& changed) {
  if (!value) {
    change_once(value, std::optional<T>(T{}), where, changed);
    return;
  }
  change_once(value, std::optional<T>{}, where, changed);
  change_each(*value, where, changed);
}

template <class T>
void change_shared(std::shared_ptr<const T>& value, const std::string& where,
                   const Changed& changed) {
  const std::shared_ptr<const T> before = value;
  value = before ? nullptr : std::make_shared<const T>();
  changed(where);
  if (before) {
    auto copy = std::make_shared<T>(*before);
    value = copy;
    change_each(*copy, where, changed);
  }
  value = before;
}

template <class List>
void change_list(List& list, const std::string& where, const Changed& changed) {
  if constexpr (artifact::kIs<List, std::vector>) {
    list.emplace_back();
    changed(where + "[+]");
    list.pop_back();
  }
  for (std::size_t k = 0; k < list.size(); ++k)
    change_each(list[k], where + "[" + std::to_string(k) + "]", changed);
}

template <class T>
T other_word(T value) {
  for (int k = 0; k < kMostWords; ++k)
    if (const T other = static_cast<T>(k); other != value && !word_of(other).empty()) return other;
  return value;
}

template <class T>
void change_each(T& value, const std::string& where, const Changed& changed) {
  if constexpr (std::is_same_v<T, bool>)
    change_once(value, !value, where, changed);
  else if constexpr (std::is_integral_v<T> || std::is_same_v<T, double>)
    change_once(value, static_cast<T>(value + 1), where, changed);
  else if constexpr (std::is_same_v<T, std::string>)
    change_once(value, value + "x", where, changed);
  else if constexpr (std::is_same_v<T, Seconds> || std::is_same_v<T, std::chrono::sys_seconds>)
    change_once(value, T(value + std::chrono::seconds(1)), where, changed);
  else if constexpr (std::is_same_v<T, HourlyRate>)
    change_each(value.nano_usd_per_hour, where, changed);
  else if constexpr (std::is_same_v<T, ModelGraph> || std::is_same_v<T, std::monostate>)
    return;
  else if constexpr (HasWords<T>)
    change_once(value, other_word(value), where, changed);
  else if constexpr (std::is_enum_v<T>)
    change_once(value, static_cast<T>(static_cast<std::underlying_type_t<T>>(value) + 1), where,
                changed);
  else if constexpr (HasFields<T>)
    each_field(value, [&](const char* name, auto& field) {
      change_each(field, where + "." + name, changed);
    });
  else if constexpr (artifact::kIs<T, Fact>)
    change_fact(value, where, changed);
  else if constexpr (artifact::kIs<T, std::optional>)
    change_optional(value, where, changed);
  else if constexpr (artifact::kIs<T, std::shared_ptr>)
    change_shared(value, where, changed);
  else if constexpr (artifact::kIs<T, std::vector> || artifact::kIsArray<T>)
    change_list(value, where, changed);
  else if constexpr (artifact::kIs<T, std::map>) {
    value["a new key"];
    changed(where);
    value.erase("a new key");
    for (auto& [key, item] : value) change_each(item, where + "." + key, changed);
  } else if constexpr (artifact::kIs<T, std::variant>)
    std::visit([&](auto& one) { change_each(one, where, changed); }, value);
  else
    change_each(value.v, where, changed);
}

}  // namespace reckon::test
