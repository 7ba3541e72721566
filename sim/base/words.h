#pragma once
#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/check.h"

// The words of an enum: one table beside it, which its reader, its text and the schema share.
//
//   enum class Role { worker, chief };
//   constexpr auto words_of(Role) {
//     return std::array{Word<Role>{"worker", Role::worker}, Word<Role>{"chief", Role::chief}};
//   }
//
// gives to_text(Role::chief), from_text<Role>("chief") and texts_of<Role>(). A value may have
// several words: the first is the one that is written.
namespace reckon {

template <class E>
struct Word {
  std::string_view text;
  E value;
};

template <class E>
concept HasWords = requires(E value) {
  words_of(value);
};

template <HasWords E>
std::string_view to_text(E value) {
  static constexpr auto kWords = words_of(E{});
  const auto found = std::ranges::find(kWords, value, &Word<E>::value);
  RECKON_CHECK(found != kWords.end());
  return found->text;
}

/// nullopt: no word of it.
template <HasWords E>
std::optional<E> from_text(std::string_view text) {
  static constexpr auto kWords = words_of(E{});
  const auto found = std::ranges::find(kWords, text, &Word<E>::text);
  return found == kWords.end() ? std::nullopt : std::optional<E>(found->value);
}

/// For messages and the schema.
template <HasWords E>
std::vector<std::string> texts_of() {
  std::vector<std::string> texts;
  for (const Word<E>& word : words_of(E{})) texts.emplace_back(word.text);
  return texts;
}

}  // namespace reckon
