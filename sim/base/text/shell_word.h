#pragma once
#include <string>

namespace reckon {

/// The text as one word of bash, zsh or ksh: as it is where nothing in it has a meaning there, else
/// in single quotes; on one line and without control characters: as $'a\nb' where it has any. A
/// word that begins with '-' is an option to whoever gets it: callers refuse those, or put
/// `--name=` before them.
std::string shell_word(const std::string& text);

/// The name of a file as a word that is no option: "./-x" for "-x".
std::string shell_file(const std::string& name);

}  // namespace reckon
