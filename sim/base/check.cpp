#include "sim/base/check.h"

#include <cstdio>
#include <cstdlib>

namespace reckon::detail {
void check_failed(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "%s:%d: internal error: check failed: %s\n", file, line, condition);
  std::abort();
}
}  // namespace reckon::detail
