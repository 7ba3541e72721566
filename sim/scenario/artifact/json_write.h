#pragma once
#include <cmath>

#include "sim/base/check.h"
#include "sim/scenario/artifact/json_kinds.h"

namespace reckon::artifact {

template <class T>
Json to_json(const T& value);

inline Json json_of_number(double value) {
  if (std::isfinite(value)) return value;
  return std::isnan(value) ? kNotANumber : value > 0 ? kInfinity : kMinusInfinity;
}

/// [value, source] where nothing is assumed.
template <class T>
Json json_of_fact(const Fact<T>& fact) {
  Json json = Json::array({to_json(fact.value)});
  const Json low = to_json(fact.low), high = to_json(fact.high);
  if (fact.assumed || low != json[0] || high != json[0]) {
    json.push_back(low);
    json.push_back(high);
    json.push_back(fact.assumed);
  }
  json.push_back(to_json(fact.source));
  return json;
}

template <class List>
Json json_of_list(const List& list) {
  Json json = Json::array();
  for (const auto& item : list) json.push_back(to_json(item));
  return json;
}

template <class Map>
Json json_of_map(const Map& map) {
  Json json = Json::object();
  for (const auto& [key, value] : map) json[key] = to_json(value);
  return json;
}

template <class Variant>
Json json_of_variant(const Variant& value) {
  return std::visit(
      [](const auto& one) {
        using One = std::decay_t<decltype(one)>;
        return Json::array({word_of_alternative(std::type_identity<One>{}), to_json(one)});
      },
      value);
}

template <class T>
Json json_of_fields(const T& object) {
  Json json = Json::object();
  each_field(object, [&](const char* name, const auto& field) { json[name] = to_json(field); });
  return json;
}

template <class T>
Json to_json(const T& value) {
  if constexpr (std::is_same_v<T, bool> || std::is_integral_v<T> || std::is_same_v<T, std::string>)
    return value;
  else if constexpr (std::is_same_v<T, double>)
    return json_of_number(value);
  else if constexpr (std::is_same_v<T, std::monostate>)
    return nullptr;
  else if constexpr (std::is_same_v<T, Seconds>)
    return json_of_number(value.count());
  else if constexpr (std::is_same_v<T, std::chrono::sys_seconds>)
    return value.time_since_epoch().count();
  else if constexpr (std::is_same_v<T, HourlyRate>)
    return value.nano_usd_per_hour;
  else if constexpr (std::is_same_v<T, ModelGraph>)
    return json_of_fields(written(value));
  else if constexpr (HasWords<T>) {
    RECKON_CHECK(!word_of(value).empty());
    return word_of(value);
  } else if constexpr (std::is_enum_v<T>)
    return static_cast<std::underlying_type_t<T>>(value);
  else if constexpr (HasFields<T>)
    return json_of_fields(value);
  else if constexpr (kIs<T, Fact>)
    return json_of_fact(value);
  else if constexpr (kIs<T, std::optional> || kIs<T, std::shared_ptr>)
    return value ? to_json(*value) : Json();
  else if constexpr (kIs<T, std::vector> || kIsArray<T>)
    return json_of_list(value);
  else if constexpr (kIs<T, std::map>)
    return json_of_map(value);
  else if constexpr (kIs<T, std::variant>)
    return json_of_variant(value);
  else {
    static_assert(IsQuantity<T>, "a type that an artifact does not know");
    return json_of_number(value.v);
  }
}

}  // namespace reckon::artifact
