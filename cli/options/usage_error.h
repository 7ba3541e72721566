#pragma once
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <utility>

namespace reckon::cli {

/// The command line is wrong: the text says what and what to do. main prints it and exits with 2.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A UsageError with what to do in lines of its own. What is wrong is one line, whatever the names
/// in it hold.
struct UsageErrorWithHint : UsageError {
  UsageErrorWithHint(const std::string& what, std::string what_to_do)
      : UsageError(what), hint(std::move(what_to_do)) {}
  std::string hint;
};

/// A UsageError for the first of these options that is given; `message(name)`: why it is out of
/// place.
template <class Message>
void refuse_given(std::initializer_list<std::pair<const char*, bool>> options, Message message) {
  for (const auto& [name, given] : options)
    if (given) throw UsageError(message(name));
}

}  // namespace reckon::cli
