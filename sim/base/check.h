#pragma once

// Programmer errors stop the program, in release builds too. User errors are Diagnostics
// (diagnostic.h), the environment's are exceptions, "no" is a value.
namespace reckon::detail {
[[noreturn]] void check_failed(const char* condition, const char* file, int line);
}
#define RECKON_CHECK(condition) \
  ((condition) ? void(0) : ::reckon::detail::check_failed(#condition, __FILE__, __LINE__))
