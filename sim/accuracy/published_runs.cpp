#include "sim/accuracy/published_runs.h"

namespace reckon {

std::int64_t SkippedRows::add(const std::string& reason, int line) {
  Reason& of = reasons[reason];
  if (of.count == 0) of.first_line = line;
  return ++of.count;
}

void SkippedRows::add(const SkippedRows& others) {
  for (const auto& [reason, more] : others.reasons) {
    Reason& of = reasons[reason];
    if (of.count == 0 || more.first_line < of.first_line) of.first_line = more.first_line;
    of.count += more.count;
  }
}

std::int64_t SkippedRows::count(std::string_view reason) const {
  const auto found = reasons.find(reason);
  return found == reasons.end() ? 0 : found->second.count;
}

}  // namespace reckon
