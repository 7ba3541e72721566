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

/// For tests that take a process' descriptors away: the sanitizer looks at an exception's type
/// through a pipe of its own, and takes the object for damaged where it gets none.
inline void skip_without_descriptors_for_sanitizers() {
#ifdef __SANITIZE_ADDRESS__
  skip_test("the sanitizer of this build needs descriptors that the test takes away");
#endif
}
