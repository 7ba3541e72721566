#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/base/random.h"
#include "sim/scenario/spec/scheduler.h"

namespace reckon {

/// Kueue's admission checks: once quota is reserved, all checks of the queue run at once, and the
/// job is admitted when each is Ready (https://kueue.sigs.k8s.io/docs/concepts/admission_check). An
/// attempt that fails gives its quota back, and the job comes back after a back-off that doubles
/// each time; after backoffLimitCount further attempts it is deactivated
/// (https://kueue.sigs.k8s.io/docs/concepts/admission, "Failure Handling"). How long a check takes
/// and how often it fails is drawn from (seed, replication, job).
class AdmissionChecks {
 public:
  /// `pools`: names by number.
  AdmissionChecks(const KueueSpec& kueue, std::span<const std::string> pools, std::uint64_t seed,
                  std::uint32_t replication);

  struct Verdict {
    enum class Kind { ready, retry, rejected };
    Kind kind = Kind::ready;
    SimTime at{};
    SimDuration back_off{};  // of a retry
  };
  /// Of an attempt that begins now; nullopt: nothing is checked.
  std::optional<Verdict> check(std::size_t job, std::size_t queue, int pool, SimTime now);

 private:
  const KueueSpec& kueue_;
  std::vector<std::vector<std::vector<std::size_t>>> checks_;  // by queue and pool
  std::uint64_t seed_;
  std::uint32_t replication_;
  struct OfJob {
    RandomStream stream;
    std::map<std::size_t, int> failures;  // by check
  };
  std::map<std::size_t, OfJob> jobs_;
};

/// Does what is drawn of checks change from replication to replication?
bool draws_checks(const KueueSpec& kueue);

}  // namespace reckon
