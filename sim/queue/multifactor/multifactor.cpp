#include "sim/queue/multifactor/multifactor.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "sim/base/check.h"
#include "sim/base/unit_text.h"

namespace reckon {
namespace {

template <class Spec>
std::int32_t index_of_name(const std::vector<Spec>& specs, const std::string& name) {
  const auto found =
      std::find_if(specs.begin(), specs.end(), [&](const Spec& s) { return s.name == name; });
  return found == specs.end() ? JobOwner::kNotSaid
                              : static_cast<std::int32_t>(found - specs.begin());
}

/// The partition of jobs that name none.
std::int32_t default_partition(const SlurmSpec& slurm) {
  const auto found = std::find_if(slurm.partitions.begin(), slurm.partitions.end(),
                                  [](const SlurmPartitionSpec& p) { return p.is_default; });
  return found == slurm.partitions.end()
             ? 0
             : static_cast<std::int32_t>(found - slurm.partitions.begin());
}

bool over(std::optional<int> limit, int value) { return limit && value > *limit; }

}  // namespace

std::vector<std::string> unknown_partitions(const JobList& list, const SlurmSpec& slurm) {
  std::vector<std::string> unknown;
  if (slurm.partitions.empty()) return unknown;
  for (const std::string& name : list.names.queues.names())
    if (index_of_name(slurm.partitions, name) < 0) unknown.push_back(name);
  return unknown;
}

/// "Suspended jobs will not release GRES" (slurm.conf(5), PreemptMode).
static bool frees_gpus(SlurmPreemptMode mode) {
  return mode == SlurmPreemptMode::requeue || mode == SlurmPreemptMode::cancel;
}

MultifactorRules::MultifactorRules(const JobList& list, const SlurmSpec& slurm,
                                   const PartitionCells& cells, int gpus)
    : list_(list), slurm_(slurm), cells_(cells) {
  make_tree();
  make_claims(gpus);
  usage_.resize(tree_.nodes.size());
  account_use_.resize(tree_.nodes.size());
  qos_use_.resize(slurm_.qos.size());
  calculate_factors(SimTime{});
  for (const SlurmQosSpec& of : slurm_.qos) {
    std::vector<char>& row = qos_preempts_.emplace_back(slurm_.qos.size(), false);
    if (slurm_.preempt_mode == SlurmPreemptMode::off) continue;
    for (const std::string& name : of.preempt)
      if (const std::int32_t k = index_of_name(slurm_.qos, name); k >= 0)
        if (frees_gpus(slurm_.qos[std::size_t(k)].preempt_mode.value_or(slurm_.preempt_mode)))
          row[std::size_t(k)] = preempts_ = true;
  }
}

/// Accounts as they are listed, parents first; users come with their jobs.
void MultifactorRules::make_tree() {
  spec_of_node_.assign(1, -1);
  std::vector<int> node_of_spec(slurm_.accounts.size(), -1);
  const auto add = [&](auto& self, std::size_t k) -> int {
    if (node_of_spec[k] >= 0) return node_of_spec[k];
    const std::int32_t above = index_of_name(slurm_.accounts, slurm_.accounts[k].parent);
    const int parent = above < 0 ? 0 : self(self, static_cast<std::size_t>(above));
    node_of_spec[k] = tree_.add(parent, slurm_.accounts[k].fairshare, false);
    spec_of_node_.push_back(static_cast<int>(k));
    return node_of_spec[k];
  };
  for (std::size_t k = 0; k < slurm_.accounts.size(); ++k) add(add, k);
  node_of_team_.assign(list_.names.teams.names().size() + 1, -1);
  for (std::size_t t = 0; t < list_.names.teams.names().size(); ++t) {
    const std::int32_t k = index_of_name(slurm_.accounts, list_.names.teams.names()[t]);
    if (k >= 0) node_of_team_[t + 1] = node_of_spec[static_cast<std::size_t>(k)];
  }
}

int MultifactorRules::account_node(std::int32_t team) {
  int& node = node_of_team_[static_cast<std::size_t>(std::int64_t{team} + 1)];
  if (node < 0) {
    node = tree_.add(0, 1, false);
    spec_of_node_.push_back(-1);
  }
  return node;
}

void MultifactorRules::make_claims(int gpus) {
  int highest_partition = 0, highest_qos = 0;
  for (const auto& p : slurm_.partitions)
    highest_partition = std::max(highest_partition, p.priority_job_factor);
  for (const auto& q : slurm_.qos) highest_qos = std::max(highest_qos, q.priority);
  const auto over_highest = [](int value, int highest) {
    return highest > 0 ? double(value) / highest : 0.0;
  };
  std::map<std::pair<int, std::int32_t>, std::int32_t> users;  // account and user -> node
  std::map<std::pair<std::int32_t, std::int32_t>, std::int32_t> of_user, of_account;
  std::map<std::tuple<std::int32_t, std::int32_t, double>, std::uint32_t> alike;
  for (const JobRequest& job : list_.jobs) {
    Claim claim;
    const int account = account_node(job.owner.team);
    const auto [user, is_new] = users.try_emplace({account, job.owner.user}, 0);
    if (is_new) {
      const int spec = spec_of_node_[static_cast<std::size_t>(account)];
      double shares = 1;
      if (spec >= 0) {
        const auto& listed = slurm_.accounts[static_cast<std::size_t>(spec)].users;
        const auto found = listed.find(list_.names.users.name(job.owner.user));
        if (found != listed.end()) shares = found->second;
      }
      user->second = tree_.add(account, shares, true);
      spec_of_node_.push_back(-1);
    }
    claim.node = user->second;
    if (!slurm_.partitions.empty())
      claim.partition =
          job.owner.queue < 0
              ? default_partition(slurm_)
              : index_of_name(slurm_.partitions, list_.names.queues.name(job.owner.queue));
    RECKON_CHECK(claim.partition >= 0);
    claim.qos = index_of_name(slurm_.qos, list_.names.qos.name(job.owner.qos));
    if (claim.qos >= 0) {
      const auto number = [&](auto& numbers, std::int32_t whose) {
        return numbers.try_emplace({claim.qos, whose}, std::int32_t(numbers.size())).first->second;
      };
      claim.of_user = number(of_user, job.owner.user);
      claim.of_account = number(of_account, job.owner.team);
    }
    const double size =
        slurm_.favor_small ? double(gpus - job.gpus() + 1) / gpus : double(job.gpus()) / gpus;
    const double partition =
        slurm_.partitions.empty()
            ? 0
            : over_highest(slurm_.partitions[std::size_t(claim.partition)].priority_job_factor,
                           highest_partition);
    const double qos =
        claim.qos < 0 ? 0 : over_highest(slurm_.qos[std::size_t(claim.qos)].priority, highest_qos);
    claim.constant = slurm_.weight_job_size * std::clamp(size, 0.0, 1.0) +
                     slurm_.weight_partition * partition + slurm_.weight_qos * qos;
    claim.group = alike
                      .try_emplace({claim.node, claim.qos, claim.constant},
                                   static_cast<std::uint32_t>(alike.size()))
                      .first->second;
    claims_.push_back(claim);
  }
  qos_users_.resize(of_user.size());
  qos_accounts_.resize(of_account.size());
}

void MultifactorRules::calculate_factors(SimTime at) {
  calculated_ = at;
  if (slurm_.weight_fairshare == 0) {
    factors_.assign(tree_.nodes.size(), 0);
    return;
  }
  std::vector<double> usage(tree_.nodes.size(), 0);
  double all = 0;
  for (std::size_t n = 0; n < usage.size(); ++n)
    if (tree_.nodes[n].is_user) all += usage[n] = usage_[n].at(at, slurm_.decay_half_life);
  if (!slurm_.no_fair_tree) {
    factors_ = fair_tree_factors(tree_, usage);
    return;
  }
  for (double& u : usage) u = all > 0 ? u / all : 0;
  factors_ = classic_factors(tree_, usage);
}

std::optional<SimTime> MultifactorRules::recalculates(SimTime now) {
  const SimDuration period = to_clock(slurm_.calc_period);
  const SimTime at = SimTime{} + (now - SimTime{}) / period * period;
  if (at <= calculated_) return std::nullopt;
  calculate_factors(at);
  return at;
}

double MultifactorRules::priority(std::size_t job, SimTime now) {
  const Claim& claim = claims_[job];
  const double waited = to_seconds(now - list_.jobs[job].submit).count();
  const double age = std::clamp(waited / slurm_.max_age.count(), 0.0, 1.0);
  return std::floor(claim.constant + slurm_.weight_age * age +
                    slurm_.weight_fairshare * factors_[static_cast<std::size_t>(claim.node)]);
}

CellSet MultifactorRules::cells(std::size_t job) const {
  return cells_.of_partition[static_cast<std::size_t>(claims_[job].partition)];
}

bool MultifactorRules::may_start(std::size_t job) const {
  const Claim& claim = claims_[job];
  const int gpus = list_.jobs[job].gpus();
  if (claim.qos >= 0) {
    const SlurmQosSpec& qos = slurm_.qos[static_cast<std::size_t>(claim.qos)];
    const InUse& all = qos_use_[static_cast<std::size_t>(claim.qos)];
    const InUse& user = qos_users_[static_cast<std::size_t>(claim.of_user)];
    const InUse& account = qos_accounts_[static_cast<std::size_t>(claim.of_account)];
    if (over(qos.grp_gpus, all.gpus + gpus) || over(qos.grp_jobs, all.jobs + 1) ||
        over(qos.max_gpus_per_user, user.gpus + gpus) ||
        over(qos.max_jobs_per_user, user.jobs + 1) ||
        over(qos.max_gpus_per_account, account.gpus + gpus) ||
        over(qos.max_jobs_per_account, account.jobs + 1))
      return false;
  }
  for (int n = tree_.nodes[std::size_t(claim.node)].parent; n > 0;
       n = tree_.nodes[std::size_t(n)].parent) {
    const int spec = spec_of_node_[static_cast<std::size_t>(n)];
    if (spec < 0) continue;
    const SlurmAccountSpec& account = slurm_.accounts[static_cast<std::size_t>(spec)];
    const InUse& use = account_use_[static_cast<std::size_t>(n)];
    if (over(account.grp_gpus, use.gpus + gpus) || over(account.grp_jobs, use.jobs + 1))
      return false;
  }
  return true;
}

bool MultifactorRules::may_preempt(std::size_t job, std::size_t running) const {
  const std::int32_t of = claims_[job].qos, other = claims_[running].qos;
  return of >= 0 && other >= 0 && qos_preempts_[std::size_t(of)][std::size_t(other)];
}

double MultifactorRules::worth(std::size_t running) const {
  if (slurm_.preempt_youngest_first) return 0;
  constexpr double kAboveAllSizes = 0x1p24;  // more GPUs than any job has
  return slurm_.qos[std::size_t(claims_[running].qos)].priority * kAboveAllSizes +
         list_.jobs[running].gpus();
}

SimTime MultifactorRules::exempt_until(std::size_t running, SimTime since) const {
  const auto& own = slurm_.qos[std::size_t(claims_[running].qos)].exempt_time;
  return since + to_clock(own.value_or(slurm_.preempt_exempt_time));
}

SimDuration MultifactorRules::grace(std::size_t running) const {
  return to_clock(slurm_.qos[std::size_t(claims_[running].qos)].grace_time);
}

bool MultifactorRules::cancels(std::size_t running) const {
  const auto& own = slurm_.qos[std::size_t(claims_[running].qos)].preempt_mode;
  return own.value_or(slurm_.preempt_mode) == SlurmPreemptMode::cancel;
}

SimDuration MultifactorRules::kept(SimDuration done) const {
  return kept_work(done, slurm_.checkpoint);
}

void MultifactorRules::count(std::size_t job, SimTime now, int jobs) {
  const Claim& claim = claims_[job];
  const int gpus = jobs * list_.jobs[job].gpus();
  const auto add = [&](InUse& use) {
    use.jobs += jobs;
    use.gpus += gpus;
  };
  if (claim.qos >= 0) {
    add(qos_use_[static_cast<std::size_t>(claim.qos)]);
    add(qos_users_[static_cast<std::size_t>(claim.of_user)]);
    add(qos_accounts_[static_cast<std::size_t>(claim.of_account)]);
  }
  for (int n = tree_.nodes[std::size_t(claim.node)].parent; n > 0;
       n = tree_.nodes[std::size_t(n)].parent)
    add(account_use_[static_cast<std::size_t>(n)]);
  if (slurm_.weight_fairshare > 0)
    usage_[static_cast<std::size_t>(claim.node)].add_gpus(gpus, now, slurm_.decay_half_life);
}

std::optional<std::string> MultifactorRules::never(std::size_t job) const {
  const Claim& claim = claims_[job];
  const int gpus = list_.jobs[job].gpus();
  const auto& fixed = std::get<FixedTime>(list_.jobs[job].work);
  const Seconds asked = to_seconds(fixed.limit.value_or(fixed.time));
  const auto gpus_over = [&](std::optional<int> limit, const std::string& whose,
                             std::string_view which) -> std::optional<std::string> {
    if (!over(limit, gpus)) return std::nullopt;
    return fmt::format("{} has {}=gres/gpu={}", whose, which, *limit);
  };
  if (!slurm_.partitions.empty()) {
    const SlurmPartitionSpec& p = slurm_.partitions[static_cast<std::size_t>(claim.partition)];
    if (p.max_time && asked > *p.max_time)
      return fmt::format("it asks for {}, and partition '{}' has MaxTime={}",
                         format_duration(asked), p.name, format_duration(*p.max_time));
  }
  if (claim.qos >= 0) {
    const SlurmQosSpec& qos = slurm_.qos[static_cast<std::size_t>(claim.qos)];
    const std::string whose = fmt::format("QOS '{}'", qos.name);
    if (qos.max_wall && asked > *qos.max_wall)
      return fmt::format("it asks for {}, and {} has MaxWall={}", format_duration(asked), whose,
                         format_duration(*qos.max_wall));
    for (const auto& [limit, which] :
         {std::pair{qos.max_gpus_per_job, "MaxTRESPerJob"}, std::pair{qos.grp_gpus, "GrpTRES"},
          std::pair{qos.max_gpus_per_user, "MaxTRESPU"},
          std::pair{qos.max_gpus_per_account, "MaxTRESPA"}})
      if (auto why = gpus_over(limit, whose, which)) return why;
    for (const auto& [limit, which] :
         {std::pair{qos.grp_jobs, "GrpJobs"}, std::pair{qos.max_jobs_per_user, "MaxJobsPU"},
          std::pair{qos.max_jobs_per_account, "MaxJobsPA"}})
      if (limit == 0) return fmt::format("{} has {}=0", whose, which);
  }
  for (int n = tree_.nodes[std::size_t(claim.node)].parent; n > 0;
       n = tree_.nodes[std::size_t(n)].parent) {
    const int spec = spec_of_node_[static_cast<std::size_t>(n)];
    if (spec < 0) continue;
    const SlurmAccountSpec& account = slurm_.accounts[static_cast<std::size_t>(spec)];
    const std::string whose = fmt::format("account '{}'", account.name);
    if (auto why = gpus_over(account.grp_gpus, whose, "GrpTRES")) return why;
    if (account.grp_jobs == 0) return fmt::format("{} has GrpJobs=0", whose);
  }
  return std::nullopt;
}

}  // namespace reckon
