#pragma once
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

// What one question may take of this machine. It is estimated before the work begins, and refused
// with the number: a typing mistake of three zeros must not fill the memory or run for days.
namespace reckon {

struct WorkLimits {
  double cpu_seconds = 3600;  // on one core; so many threads take a part of it each
  double bytes = 8e9;
};
/// The defaults, or what the environment says instead: RECKON_MAX_CPU_TIME (a duration: 12h) and
/// RECKON_MAX_MEMORY (a size: 32GiB). Errors: std::runtime_error where one of them cannot be read.
WorkLimits work_limits();

/// The question takes more than the limits allow. `what` is a sentence with the number, `hint` what
/// to do.
struct TooMuchWork : std::runtime_error {
  TooMuchWork(const std::string& what, std::string hint)
      : std::runtime_error(what), hint(std::move(hint)) {}
  std::string hint;
};

/// A hint of TooMuchWork: "fewer jobs or fewer replications; RECKON_MAX_CPU_TIME=4h allows it".
/// The time or size in it is the least round one above `needed`.
std::string hint_of_time(std::string_view ways_out, double cpu_seconds);
std::string hint_of_memory(std::string_view ways_out, double bytes);

}  // namespace reckon
