#pragma once
#include <boost/preprocessor/seq/for_each.hpp>
#include <boost/preprocessor/stringize.hpp>
#include <boost/preprocessor/variadic/to_seq.hpp>
#include <string_view>
#include <type_traits>

// One list of fields a struct, for whoever writes, reads or changes all of them. A list that lacks
// a field, or has one too many, does not compile: its names are bound to the struct's own fields.
// The same holds for the words of an enumeration, whose switch must be complete.

// Names of members and types cannot stand in parentheses, nor a term of a sum of terms.
// NOLINTBEGIN(bugprone-macro-parentheses)
#define RECKON_VISIT_FIELD(r, object, field) visit(BOOST_PP_STRINGIZE(field), object.field);

/// each_field(object, visit): visit("name", object.name) for every field, in their order.
#define RECKON_FIELDS(Type, ...)                                                             \
  constexpr std::string_view word_of_type(std::type_identity<Type>) { return #Type; }        \
  template <class Object, class Visit>                                                       \
  requires std::is_same_v<std::remove_const_t<Object>, Type>                                 \
  void each_field(Object& object, Visit&& visit) {                                           \
    { [[maybe_unused]] auto& [__VA_ARGS__] = object; }                                       \
    BOOST_PP_SEQ_FOR_EACH(RECKON_VISIT_FIELD, object, BOOST_PP_VARIADIC_TO_SEQ(__VA_ARGS__)) \
  }

/// The same of a struct without fields.
#define RECKON_NO_FIELDS(Type)                                                        \
  constexpr std::string_view word_of_type(std::type_identity<Type>) { return #Type; } \
  template <class Object, class Visit>                                                \
  requires std::is_same_v<std::remove_const_t<Object>, Type>                          \
  void each_field(Object&, Visit&&) { static_assert(std::is_empty_v<Type>); }

#define RECKON_VISIT_BASE(r, object, Base) \
  each_field(static_cast<copy_const_t<Object, Base>&>(object), visit);
#define RECKON_SIZE_OF(r, unused, Base) +sizeof(Base)

/// The same of a struct that has no fields but those of its bases, one base after the other.
#define RECKON_FIELDS_OF_BASES(Type, ...)                                                         \
  constexpr std::string_view word_of_type(std::type_identity<Type>) { return #Type; }             \
  template <class Object, class Visit>                                                            \
  requires std::is_same_v<std::remove_const_t<Object>, Type>                                      \
  void each_field(Object& object, Visit&& visit) {                                                \
    static_assert(sizeof(Type) == 0 BOOST_PP_SEQ_FOR_EACH(RECKON_SIZE_OF, ,                       \
                                                          BOOST_PP_VARIADIC_TO_SEQ(__VA_ARGS__)), \
                  "all fields stand in the bases");                                               \
    BOOST_PP_SEQ_FOR_EACH(RECKON_VISIT_BASE, object, BOOST_PP_VARIADIC_TO_SEQ(__VA_ARGS__))       \
  }

#define RECKON_CASE_OF_WORD(r, Type, word) \
  case Type::word:                         \
    return BOOST_PP_STRINGIZE(word);

// NOLINTEND(bugprone-macro-parentheses)

/// word_of(value): the enumerator's own name.
#define RECKON_WORDS(Type, ...)                                                               \
  constexpr std::string_view word_of(Type value) {                                            \
    switch (value) {                                                                          \
      BOOST_PP_SEQ_FOR_EACH(RECKON_CASE_OF_WORD, Type, BOOST_PP_VARIADIC_TO_SEQ(__VA_ARGS__)) \
    }                                                                                         \
    return {};                                                                                \
  }

namespace reckon {

template <class From, class To>
using copy_const_t = std::conditional_t<std::is_const_v<From>, const To, To>;

template <class T>
concept HasFields = requires(T& object) {
  each_field(object, [](const char*, auto&) {});
};
template <class T>
concept HasEnumerators = std::is_enum_v<T> && requires(T value) {
  word_of(value);
};

/// More enumerators than any of our enumerations has.
inline constexpr int kMostWords = 64;

/// False: no enumerator has that name.
template <HasEnumerators T>
bool take_word(std::string_view word, T& value) {
  if (word.empty()) return false;
  for (int k = 0; k < kMostWords; ++k) {
    if (word_of(static_cast<T>(k)) != word) continue;
    value = static_cast<T>(k);
    return true;
  }
  return false;
}

}  // namespace reckon
