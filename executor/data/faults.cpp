#include "executor/data/faults.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace reckon::data {

void Faults::tell() const {
  if (found_.empty()) return;
  if (found_.size() == 1) throw DataError(found_.front());
  throw DataError(fmt::format("{}: {}{} faults:\n  {}", where_, enough() ? "the first " : "",
                              found_.size(), fmt::join(found_, "\n  ")));
}

}  // namespace reckon::data
