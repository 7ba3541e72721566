#pragma once
#include <sys/resource.h>

#include <string>

#include "support/skip.h"

namespace reckon::test {

/// Lets this process have so many descriptors; skips the test where it may not.
inline void need_descriptors(int count) {
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  if (files.rlim_cur >= rlim_t(count)) return;
  files.rlim_cur = files.rlim_max;
  if (files.rlim_max < rlim_t(count) || ::setrlimit(RLIMIT_NOFILE, &files) != 0)
    skip_test("this process may not have " + std::to_string(count) + " descriptors");
}

}  // namespace reckon::test
