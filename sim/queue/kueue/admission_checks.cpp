#include "sim/queue/kueue/admission_checks.h"

#include <algorithm>
#include <cmath>

#include "sim/queue/arrivals.h"

namespace reckon {
namespace {

constexpr Purpose kChecks{"queue_admission_check"};

}  // namespace

AdmissionChecks::AdmissionChecks(const KueueSpec& kueue, std::span<const std::string> pools,
                                 std::uint64_t seed, std::uint32_t replication)
    : kueue_(kueue), seed_(seed), replication_(replication) {
  for (const ClusterQueueSpec& queue : kueue.cluster_queues) {
    auto& by_pool = checks_.emplace_back(pools.size());
    for (const KueueCheckRuleSpec& rule : queue.admission_checks) {
      const auto check =
          std::ranges::find(kueue.admission_checks, rule.name, &KueueAdmissionCheckSpec::name);
      for (std::size_t pool = 0; pool < pools.size(); ++pool)
        if (rule.on_flavors.empty() ||
            std::ranges::find(rule.on_flavors, pools[pool]) != rule.on_flavors.end())
          by_pool[pool].push_back(static_cast<std::size_t>(check - kueue.admission_checks.begin()));
    }
  }
}

std::optional<AdmissionChecks::Verdict> AdmissionChecks::check(std::size_t job, std::size_t queue,
                                                               int pool, SimTime now) {
  const auto& checks = checks_[queue][static_cast<std::size_t>(pool)];
  if (checks.empty()) return std::nullopt;
  OfJob& own = jobs_
                   .try_emplace(job, OfJob{RandomStream(seed_, replication_, kChecks,
                                                        static_cast<std::uint32_t>(job)),
                                           {}})
                   .first->second;
  Verdict verdict{Verdict::Kind::ready, now, {}};
  std::optional<std::pair<SimTime, std::size_t>> failed;  // the first that does
  for (const std::size_t c : checks) {
    const KueueAdmissionCheckSpec& check = kueue_.admission_checks[c];
    const SimTime at = now + to_clock(draw_time(check.ready_after, own.stream));
    if (own.stream.uniform() < check.failures)
      failed = std::min(failed.value_or(std::pair(at, c)), std::pair(at, c));
    else
      verdict.at = std::max(verdict.at, at);
  }
  if (!failed) {
    own.failures.clear();  // who is evicted later has all its attempts again
    return verdict;
  }
  const KueueRetrySpec& retry = kueue_.admission_checks[failed->second].retry;
  const int failures = ++own.failures[failed->second];
  verdict.at = failed->first;
  verdict.kind =
      failures > retry.backoff_limit_count ? Verdict::Kind::rejected : Verdict::Kind::retry;
  verdict.back_off = to_clock(
      std::min(retry.backoff_max, std::exp2(std::min(failures - 1, 60)) * retry.backoff_base));
  return verdict;
}

bool draws_checks(const KueueSpec& kueue) {
  return std::ranges::any_of(kueue.admission_checks, [](const KueueAdmissionCheckSpec& check) {
    return check.failures > 0 || !std::holds_alternative<Seconds>(check.ready_after);
  });
}

}  // namespace reckon
