#pragma once
#include <string_view>

namespace reckon::cli {

/// On standard error as it is: our own movements of the cursor, beside what print_error() escapes.
void print_control(std::string_view text);

}  // namespace reckon::cli
