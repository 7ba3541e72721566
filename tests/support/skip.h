#pragma once
#include <cstdio>
#include <cstdlib>
#include <string>

/// Ends the test program with CTest's SKIP_RETURN_CODE and the reason. CTest runs one TEST_CASE a
/// process.
[[noreturn]] inline void skip_test(const std::string& reason) {
  std::printf("SKIPPED: %s\n", reason.c_str());
  std::fflush(stdout);
  std::_Exit(77);
}
