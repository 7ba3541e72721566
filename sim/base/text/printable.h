#pragma once
#include <string>
#include <string_view>

// Text of users where people read it: a terminal, a log, a message.
namespace reckon {

/// Bytes of the UTF-8 character that `text` begins with (RFC 3629: no overlong forms, no
/// surrogates); 0: it begins with none, or is empty.
std::size_t utf8_length(std::string_view text);

/// The code point of one character of `utf8_length` bytes.
char32_t code_point(std::string_view character);

/// Whether the character does something to a terminal, or to the order in which the letters beside
/// it are shown, instead of being one: C0 and C1 controls, DEL, the line and paragraph separators,
/// the byte order mark, noncharacters of the first plane, Unicode's Bidi_Control.
bool is_control(char32_t c);

/// On one line, with an escape in place of every control character: \n, \r, \t, \u001b as in JSON;
/// \xff for a byte that is no UTF-8; \u005b for the bracket of "##[", which GitHub's runners take
/// for a command wherever it stands in a line. Text without any is returned as it is.
std::string printable(std::string_view text);

/// The same of a text of several lines: line feeds and tabs stay.
std::string printable_lines(std::string_view text);

/// The name of a file at the begin of a line: as printable(), and with "./" before "::" (and
/// blanks before it), which GitHub takes for a workflow command.
std::string printable_file(std::string_view name);

/// A user's name as that of one file or directory: '_' for '/'.
std::string as_file_name(std::string_view name);

}  // namespace reckon
