#pragma once
#include <string>

namespace reckon {

/// The text as one word of a POSIX shell: as it is where nothing in it has a meaning there, else in
/// single quotes.
std::string shell_word(const std::string& text);

}  // namespace reckon
