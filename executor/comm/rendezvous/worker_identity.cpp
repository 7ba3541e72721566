#include "executor/comm/rendezvous/worker_identity.h"

#include <charconv>
#include <climits>
#include <cstdlib>
#include <initializer_list>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "executor/comm/rendezvous/handshake.h"
#include "executor/comm/rendezvous/identity_slurm.h"

namespace reckon {

namespace {
std::optional<int> whole_number(const std::string& text, int least, int most) {
  int value = 0;
  const char* end = text.data() + text.size();
  const auto [at, code] = std::from_chars(text.data(), end, value);
  const bool whole = code == std::errc{} && at == end && value >= least && value <= most;
  return whole ? std::optional(value) : std::nullopt;
}

class IdentityReader {
 public:
  IdentityReader(const IdentityFlags& flags, const Environment& environment)
      : flags_(flags), environment_(environment) {}

  Expected<WorkerIdentity> read() {
    const auto tf_config = environment_("TF_CONFIG");
    const auto step = slurm_step();
    const bool by_flags = flags_.rank || flags_.role || flags_.workers;
    if (by_flags)
      read_flags();
    else if (tf_config)
      read_tf_config(*tf_config);
    else if (environment_("RANK") || (environment_("WORLD_SIZE") && !step))
      read_rank_variables();
    else if (step)
      read_slurm_variables(*step);
    read_common();
    check();
    if (!problems_.empty()) return tl::unexpected(problems_);
    return identity_;
  }

 private:
  void problem(const std::string& where, std::string what, std::string hint = {}) {
    problems_.push_back({.at = {.file = where}, .what = std::move(what), .hint = std::move(hint)});
  }

  /// A whole number in [least, most] of an environment variable; nullopt: not set, or a problem.
  std::optional<int> number(const std::string& name, int least, int most,
                            const std::string& meaning) {
    const auto text = environment_(name);
    if (!text) return std::nullopt;
    if (const auto value = whole_number(*text, least, most)) return value;
    problem(name, fmt::format("{} is '{}'", name, *text),
            fmt::format("{}: a whole number from {} to {}", meaning, least, most));
    return std::nullopt;
  }

  std::optional<int> needed(const std::string& name, int least, int most,
                            const std::string& meaning) {
    if (!environment_(name)) {
      problem(name, fmt::format("{} is not set", name), meaning);
      return std::nullopt;
    }
    return number(name, least, most, meaning);
  }

  void read_tf_config(const std::string& text) {
    auto identity = identity_from_tf_config(text);
    if (identity)
      identity_ = *identity;
    else
      problems_ = identity.error();
  }

  void read_rank_variables() {
    read_place("RANK", "WORLD_SIZE");
    if (identity_.workers > 1) read_master_variables();
  }

  void read_place(const std::string& of_rank, const std::string& of_size) {
    identity_.source = of_rank;
    const auto size = needed(of_size, 1, kMost, "how many workers the job has");
    const auto rank = needed(of_rank, 0, kMost, "this worker's number, from 0");
    identity_.workers = size.value_or(1);
    identity_.rank = identity_.index = rank.value_or(0);
    if (size && rank && *rank >= *size)
      problem(of_rank, fmt::format("{} is {}, but {} is {}", of_rank, *rank, of_size, *size),
              fmt::format("ranks count from 0 to {} - 1", of_size));
    identity_.role = identity_.rank == 0 ? Role::chief : Role::worker;
  }

  std::optional<std::string> first_set(std::initializer_list<const char*> names) {
    for (const char* name : names)
      if (environment_(name)) return name;
    return std::nullopt;
  }

  /// The number of the step of Slurm that this process is one of several tasks of. A batch script
  /// and a shell of salloc have the job's variables, SLURM_PROCID among them, but no number of a
  /// step, and are one process: Slurm's src/common/env.c, setup_env(), sets it where it is not
  /// negative, which the numbers of these are [SchedMD/slurm, 00623bab].
  std::optional<int> slurm_step() {
    const auto named = first_set({"SLURM_STEP_ID", "SLURM_STEPID"});
    if (!named || !environment_("SLURM_PROCID")) return std::nullopt;
    const auto tasks = environment_(of_slurm_tasks());
    if (tasks && whole_number(*tasks, 1, 1)) return std::nullopt;
    return whole_number(*environment_(*named), 0, INT_MAX);
  }
  /// SLURM_NTASKS may be the job's.
  std::string of_slurm_tasks() {
    return first_set({"SLURM_STEP_NUM_TASKS"}).value_or("SLURM_NTASKS");
  }

  void read_slurm_variables(int step) {
    read_place("SLURM_PROCID", of_slurm_tasks());
    if (const auto said = number("WORLD_SIZE", 1, kMost, "how many workers the job has");
        said && *said != identity_.workers)
      problem(
          "WORLD_SIZE",
          fmt::format("WORLD_SIZE is {}, but {} is {}", *said, of_slurm_tasks(), identity_.workers),
          "set RANK as well, or leave both to Slurm");
    if (const auto local = number("SLURM_LOCALID", 0, kMost, "this task's number on its node"))
      identity_.local_rank = *local;
    if (const auto attempt = number("SLURM_RESTART_COUNT", 0, kMost, "how often it was requeued"))
      identity_.attempt = *attempt;
    const auto job = needed(first_set({"SLURM_JOB_ID", "SLURM_JOBID"}).value_or("SLURM_JOB_ID"), 0,
                            INT_MAX, "the number that Slurm gave the job");
    identity_.job = fmt::format("slurm-{}.{}", job.value_or(0), step);
    if (flags_.master) return;
    const auto port = number("MASTER_PORT", 1, 65535, "a port that is free on rank 0's machine");
    identity_.master.port = port ? std::uint16_t(*port) : slurm_meeting_port(job.value_or(0), step);
    const std::string address = master_address();
    identity_.master.host = !address.empty() ? address : first_node();
  }

  /// Of the step; "": a problem.
  std::string first_node() {
    const auto name = first_set({"SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST", "SLURM_NODELIST"});
    constexpr const char* kHint = "a list of nodes like node[01-04,7],other; or set MASTER_ADDR";
    if (!name) {
      problem("SLURM_STEP_NODELIST", "SLURM_STEP_NODELIST is not set", kHint);
      return "";
    }
    const auto node = first_slurm_node(*environment_(*name));
    if (!node) problem(*name, fmt::format("{} is '{}'", *name, *environment_(*name)), kHint);
    return node.value_or("");
  }

  /// Without the brackets that an IPv6 address has where a port follows; "": not set.
  std::string master_address() {
    std::string address = environment_("MASTER_ADDR").value_or("");
    if (address.size() > 2 && address.front() == '[' && address.back() == ']')
      address = address.substr(1, address.size() - 2);
    return address;
  }

  void read_master_variables() {
    const std::string address = master_address();
    if (address.empty())
      problem("MASTER_ADDR", "MASTER_ADDR is not set",
              "the name or address of the machine of rank 0");
    const auto port = needed("MASTER_PORT", 1, 65535, "a port that is free on rank 0's machine");
    identity_.master = {address, std::uint16_t(port.value_or(0))};
  }

  void read_flags() {
    identity_.source = "flags";
    const int workers = flags_.workers.value_or(1), servers = flags_.servers.value_or(0);
    if (workers < 1) problem("--workers", fmt::format("--workers is {}", workers), "at least 1");
    if (servers < 0) problem("--servers", fmt::format("--servers is {}", servers), "0 or more");
    identity_.workers = workers;
    identity_.servers = servers;
    identity_.index = flags_.rank.value_or(0);
    const std::string role = flags_.role.value_or("worker");
    if (role == "worker" || role == "chief")
      read_worker(role == "chief");
    else if (role == "ps")
      read_server();
    else if (role == "evaluator")
      identity_.role = Role::evaluator, identity_.rank = -1;
    else
      problem("--role",
              fmt::format("--role is '{}'{}", role,
                          did_you_mean(role, std::vector<std::string>{"worker", "chief", "ps",
                                                                      "evaluator"})),
              "worker, chief, ps or evaluator");
  }

  void read_worker(bool chief) {
    if (chief && identity_.index != 0)
      problem("--role", fmt::format("--role is chief, but --rank is {}", identity_.index),
              "the chief is rank 0");
    if (identity_.index < 0 || identity_.index >= identity_.workers)
      problem("--rank",
              fmt::format("--rank is {} of {} workers", identity_.index, identity_.workers),
              "ranks count from 0 to --workers - 1");
    identity_.rank = identity_.index;
    identity_.role = identity_.rank == 0 ? Role::chief : Role::worker;
  }

  void read_server() {
    if (identity_.index < 0 || identity_.index >= identity_.servers)
      problem("--rank",
              fmt::format("--rank is {} of {} servers", identity_.index, identity_.servers),
              "with --role ps, ranks count from 0 to --servers - 1");
    identity_.rank = identity_.workers + identity_.index;
    identity_.role = Role::parameter_server;
  }

  void read_common() {
    if (const auto local = number("LOCAL_RANK", 0, kMost, "this worker's number on its machine"))
      identity_.local_rank = *local;
    if (const auto attempt =
            number("TORCHELASTIC_RESTART_COUNT", 0, kMost, "how often the job was restarted"))
      identity_.attempt = *attempt, identity_.attempt_is_own = true;
    if (const auto job = environment_("TORCHELASTIC_RUN_ID")) identity_.job = *job;
    identity_.local_rank = flags_.local_rank.value_or(identity_.local_rank);
    identity_.attempt = flags_.attempt.value_or(identity_.attempt);
    if (flags_.attempt) identity_.attempt_is_own = false;
    identity_.job = flags_.job.value_or(identity_.job);
    identity_.address = flags_.address.value_or("");
    if (!flags_.master) return;
    if (const auto master = parse_host_port(*flags_.master); master && master->port > 0)
      identity_.master = *master;
    else
      problem("--master", fmt::format("--master is '{}'", *flags_.master),
              "host:port or [IPv6]:port of rank 0");
  }

  void check() {
    if (identity_.source == "flags" && identity_.members() > 1 && !flags_.master) {
      if (environment_("MASTER_ADDR"))
        read_master_variables();
      else
        problem("--master", "--master is missing: where do the processes of the job meet?",
                "host:port of rank 0, or MASTER_ADDR and MASTER_PORT");
    }
    if (identity_.job.size() > kLongestJobName) {
      const std::string where = flags_.job ? "--job" : "TORCHELASTIC_RUN_ID";
      problem(where,
              fmt::format("{} has {} characters, more than {}", where, identity_.job.size(),
                          kLongestJobName),
              flags_.job ? "a shorter name" : "a shorter one (torchrun's --rdzv-id), or --job");
    }
    if (identity_.attempt < 0)
      problem("--attempt", fmt::format("--attempt is {}", identity_.attempt), "0 or more");
    if (identity_.local_rank < 0)
      problem("--local-rank", fmt::format("--local-rank is {}", identity_.local_rank), "0 or more");
  }

  static constexpr int kMost = 1'000'000;
  const IdentityFlags& flags_;
  const Environment& environment_;
  WorkerIdentity identity_;
  Diagnostics problems_;
};
}  // namespace

Environment process_environment() {
  return [](const std::string& name) -> std::optional<std::string> {
    const char* value = std::getenv(name.c_str());
    return value != nullptr ? std::optional<std::string>(value) : std::nullopt;
  };
}

std::string unread_launcher(const Environment& environment) {
  std::vector<std::string> found;
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "PMI_RANK", "PMI_SIZE",
                           "PMIX_RANK", "MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE",
                           "FLUX_TASK_RANK", "FLUX_JOB_SIZE", "PALS_RANKID", "JSM_NAMESPACE_RANK"})
    if (environment(name)) found.emplace_back(name);
  return fmt::format("{}", fmt::join(found, ", "));
}

Expected<WorkerIdentity> worker_identity(const IdentityFlags& flags,
                                         const Environment& environment) {
  return IdentityReader(flags, environment).read();
}

}  // namespace reckon
