#pragma once
#include <catch2/catch.hpp>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "executor/comm/rendezvous/worker_identity.h"

// Identities of processes in the tests' own environments.
namespace reckon::test {

inline Environment with(std::map<std::string, std::string> variables) {
  return [variables = std::move(variables)](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  };
}
/// All messages, each "variable: what".
inline std::vector<std::string> problems(const IdentityFlags& flags,
                                         const Environment& environment) {
  std::vector<std::string> all;
  const auto identity = worker_identity(flags, environment);
  REQUIRE_FALSE(identity.has_value());
  for (const Diagnostic& d : identity.error()) all.push_back(d.at.file + ": " + d.what);
  return all;
}

}  // namespace reckon::test
