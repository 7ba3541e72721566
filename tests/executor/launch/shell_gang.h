#pragma once
#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "executor/launch/gang.h"

// Gangs of small programs of the shell.
namespace reckon::test {

/// A member that is a small program of the shell; $PROGRESS writes to its watcher.
inline ProcessSpec shell(const std::string& name, const std::string& script) {
  return {name, {"sh", "-c", "say() { echo \"$*\" >&$RECKON_PROGRESS_FD; }\n" + script}, {}, {}};
}

inline GangOptions gang_of(std::vector<std::string> scripts) {
  GangOptions options;
  for (std::size_t k = 0; k < scripts.size(); ++k)
    options.members.push_back(shell("rank " + std::to_string(k), scripts[k]));
  options.grace = 5s;
  options.notice = 5s;
  return options;
}

inline Seconds elapsed_of(const std::function<void()>& f) {
  const auto begin = std::chrono::steady_clock::now();
  f();
  return std::chrono::steady_clock::now() - begin;
}

}  // namespace reckon::test
