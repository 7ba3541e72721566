#pragma once
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "executor/kubernetes/kubectl_error.h"
#include "executor/launch/process.h"
#include "sim/base/quantity.h"

// The one place that talks to a cluster: the user's own kubectl, with the user's kubeconfig, so
// that every way to log in works that works for the user.
namespace reckon::kubernetes {

/// For commands about each of the objects of a job: kubectl asks a server five times a second.
inline constexpr Seconds kManyObjects{600};

using Json = nlohmann::json;
using Words = std::vector<std::string>;

struct KubectlResult {
  int code = 0;
  std::string out, err;
  bool good() const { return code == 0; }
};

class Kubectl {
 public:
  struct Target {
    std::string program = "kubectl";  // looked up in PATH
    std::string context;              // "": kubectl's current one
    std::string name_space;           // "": the context's
  };
  /// The program is what RECKON_KUBECTL names, where it is set.
  static Kubectl of_user(std::string context, std::string name_space);
  explicit Kubectl(Target target) : target_(std::move(target)) {}
  /// The same, whose commands that change the cluster are started, and go on, only while `may`
  /// holds; else they fail with words of a lost connection. `may` is asked from any thread.
  Kubectl guarded(std::function<bool()> may) const;

  /// One try. After `limit` it is killed, and has failed with words of a lost connection. Throws
  /// KubectlError where kubectl itself cannot be started.
  KubectlResult attempt(const Words& words, const std::string& input = {},
                        Seconds limit = kLimit) const;
  /// What it printed. Throws KubectlError.
  std::string run(const Words& words, const std::string& input = {}, Seconds limit = kLimit) const;
  Json json(const Words& words, Seconds limit = kLimit) const;
  /// A GET of the API itself; lists carry the version from which a watch goes on.
  Json raw(const std::string& path, Seconds limit = kLimit) const;
  /// One that goes on until it ends or is dropped; errors are apart.
  std::unique_ptr<ChildProcess> start(const Words& words) const;
  std::unique_ptr<ChildProcess> start_raw(const std::string& path) const;

  const std::string& name_space() const { return target_.name_space; }
  static constexpr Seconds kLimit{60};

 private:
  Words command(const Words& words, bool in_namespace) const;
  KubectlResult attempt_command(const Words& command, const std::string& input, Seconds limit,
                                bool acts) const;
  std::string checked(KubectlResult result, const Words& words) const;

  Target target_;
  std::function<bool()> may_;  // empty: always
};

/// Delays between tries: doubling, from half a second to half a minute.
class Backoff {
 public:
  Seconds next() {
    const Seconds now = delay_;
    delay_ = std::min(2 * delay_, Seconds{30});
    return now;
  }
  void reset() { delay_ = kFirst; }

 private:
  static constexpr Seconds kFirst{0.5};
  Seconds delay_ = kFirst;
};

/// Runs `f` until it does not fail for a reason that passes (failure_of), or `waiting` returns
/// false; then its KubectlError is thrown. `waiting` is told of each failure, with the delay until
/// the next try, and is expected to sleep it out.
template <class F>
auto patiently(F&& f, const std::function<bool(const KubectlError&, Seconds)>& waiting) {
  Backoff backoff;
  for (;;) {
    try {
      return f();
    } catch (const KubectlError& error) {
      if (!passes(error.failure()) || !waiting(error, backoff.next())) throw;
    }
  }
}

}  // namespace reckon::kubernetes
