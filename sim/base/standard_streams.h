#pragma once
#include <string>
#include <string_view>

// What a program says.
namespace reckon {

/// Everything of `text` into the descriptor; false: its reader closed the pipe. Throws
/// std::runtime_error with `name` and the reason where it cannot be written.
bool write_text(int descriptor, std::string_view text, const std::string& name);

/// Prints on standard output, control characters of users' names escaped (printable_lines()).
/// Throws when it cannot be written; a reader that has gone away (`| head`) ends the output
/// quietly.
void print(std::string_view text);

/// Prints on standard error as print() does, as far as that is possible.
void print_error(std::string_view text);

/// On standard error as it is: our own movements of the cursor, beside what print_error() escapes.
void print_control(std::string_view text);

}  // namespace reckon
