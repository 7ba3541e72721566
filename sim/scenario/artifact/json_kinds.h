#pragma once
#include <array>
#include <chrono>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "sim/scenario/artifact/plan_fields.h"

// What writer and reader both need to know of a type.
namespace reckon::artifact {

using Json = nlohmann::json;  // keys sorted: one text for one value

template <class T, template <class...> class Template>
inline constexpr bool kIs = false;
template <template <class...> class Template, class... Arguments>
inline constexpr bool kIs<Template<Arguments...>, Template> = true;

template <class T>
inline constexpr bool kIsArray = false;
template <class T, std::size_t N>
inline constexpr bool kIsArray<std::array<T, N>> = true;

template <class T>
concept IsQuantity = requires(T q) {
  q.v;
}
&&sizeof(T) == sizeof(double);

/// Numbers that JSON does not have.
inline constexpr std::string_view kInfinity = "inf", kMinusInfinity = "-inf", kNotANumber = "nan";

// How a variant's alternative is named; those of ours by their type.
constexpr std::string_view word_of_alternative(std::type_identity<std::monostate>) {
  return "none";
}
constexpr std::string_view word_of_alternative(std::type_identity<std::string>) { return "text"; }
constexpr std::string_view word_of_alternative(std::type_identity<Seconds>) { return "seconds"; }
template <HasFields T>
constexpr std::string_view word_of_alternative(std::type_identity<T> type) {
  return word_of_type(type);
}

WrittenModel written(const ModelGraph& model);

}  // namespace reckon::artifact
