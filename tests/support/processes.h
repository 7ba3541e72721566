#pragma once
#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include "sim/base/quantity.h"

// Real processes for tests: this one, forked.
namespace reckon {

struct ProcessOutcome {
  int code = 0;        // exit code; 128 + signal
  std::string output;  // what the body returned, or the message of its exception
};

/// Runs body(rank) in `count` processes and waits for them. The exit code is 0 when the body
/// returned, 76 after a CommError, 1 after another exception. Those still there after `limit` are
/// killed (137). `meanwhile` runs in this process while they do.
std::vector<ProcessOutcome> run_processes(
    int count, const std::function<std::string(int rank)>& body, Seconds limit = Seconds{60},
    const std::function<void(const std::vector<pid_t>&)>& meanwhile = {});

}  // namespace reckon
