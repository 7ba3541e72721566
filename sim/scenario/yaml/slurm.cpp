#include <fmt/format.h>

#include "sim/base/unit_text.h"
#include "sim/scenario/yaml/fields.h"

// `cluster.scheduler.slurm:`, by the names of slurm.conf(5) and sacctmgr(1).
namespace reckon {
namespace {

constexpr double kMostWeight = 2147483647;  // an int's
constexpr double kMostGpusOfLimit = 1e6;

/// "gres/gpu=16".
template <class T>
Field<T> gpus_field(std::string_view key, std::optional<int> T::*member, std::string_view doc) {
  return field<T>(
      key, Form{Form::Kind::text},
      [member](Reader& r, const YamlNode& n, T& t) {
        constexpr std::string_view kGpus = "gres/gpu=";
        const auto text = r.text(n);
        if (!text) return;
        const auto count = text->starts_with(kGpus)
                               ? parse_integer(text->substr(kGpus.size()))
                               : Parsed<std::int64_t>(tl::make_unexpected(std::string()));
        if (count && *count >= 0 && double(*count) <= kMostGpusOfLimit)
          t.*member = static_cast<int>(*count);
        else
          r.error(fmt::format("{} is '{}', and only gres/gpu is limited", r.subject(),
                              shortened(*text)),
                  "example: gres/gpu=16");
      },
      doc, "gres/gpu=16");
}

const Fields<SlurmPartitionSpec>& partition_fields() {
  using P = SlurmPartitionSpec;
  static const Fields<P> table{
      required(name_field("name", &P::name, "PartitionName.", "batch")),
      field<P>(
          "Nodes", Form{.kind = Form::Kind::list, .item = Form::Kind::text},
          [](Reader& r, const YamlNode& n, P& p) { p.nodes = r.texts(n); },
          "Pools whose nodes it has; default: all.", "[a100]"),
      number_field("PriorityJobFactor", &P::priority_job_factor, whole(0, 65533),
                   "Of its jobs, over the highest of all partitions; default: 1.", "10"),
      number_field("MaxTime", &P::max_time, duration_above_zero(),
                   "Longest time limit of a job; default: none.", "2d"),
      boolean_field("Default", &P::is_default, "Gets jobs that name no partition.", "true"),
  };
  return table;
}

const Fields<SlurmQosSpec>& qos_fields() {
  using Q = SlurmQosSpec;
  const Form jobs = whole(0, 1e9);
  static const Fields<Q> table{
      required(name_field("name", &Q::name, "Of the QOS.", "high")),
      number_field("Priority", &Q::priority, whole(0, kMostWeight),
                   "Over the highest of all QOS; default: 0.", "100"),
      field<Q>(
          "Preempt", Form{.kind = Form::Kind::list, .item = Form::Kind::text},
          [](Reader& r, const YamlNode& n, Q& q) { q.preempt = r.texts(n); },
          "QOS whose running jobs its own may preempt; default: none.", "[scavenger]"),
      number_field("PreemptExemptTime", &Q::exempt_time, duration_from_zero(),
                   "Its jobs run so long before they may be preempted; default: that of slurm.",
                   "10min"),
      word_field("PreemptMode", &Q::preempt_mode, "Of its jobs; default: that of slurm.", "CANCEL"),
      number_field("GraceTime", &Q::grace_time, duration_from_zero(),
                   "Its jobs go on so long after they were chosen to be preempted; default: 0s.",
                   "2min"),
      gpus_field("GrpTRES", &Q::grp_gpus, "GPUs of all its running jobs at most."),
      number_field("GrpJobs", &Q::grp_jobs, jobs, "Running jobs at most.", "100"),
      gpus_field("MaxTRESPU", &Q::max_gpus_per_user, "GPUs of a user at most."),
      number_field("MaxJobsPU", &Q::max_jobs_per_user, jobs, "Running jobs of a user.", "4"),
      gpus_field("MaxTRESPA", &Q::max_gpus_per_account, "GPUs of an account at most."),
      number_field("MaxJobsPA", &Q::max_jobs_per_account, jobs, "Running jobs of an account.",
                   "10"),
      gpus_field("MaxTRESPerJob", &Q::max_gpus_per_job, "GPUs of a job at most."),
      number_field("MaxWall", &Q::max_wall, duration_above_zero(), "Longest time limit of a job.",
                   "1d"),
  };
  return table;
}

void read_shares(Reader& reader, const YamlNode& node, SlurmAccountSpec& account) {
  reader.each_entry(node, [&](const std::string& key, const YamlNode& value) {
    if (const auto share = reader.number(value, whole(0, kMostWeight)))
      account.users[key] = static_cast<int>(*share);
  });
}

const Fields<SlurmAccountSpec>& account_fields() {
  using A = SlurmAccountSpec;
  static const Fields<A> table{
      required(name_field("name", &A::name, "Of the account: a team.", "vision")),
      name_field("Parent", &A::parent, "The account above it; default: root.", "research"),
      number_field("Fairshare", &A::fairshare, whole(0, kMostWeight),
                   "Shares among its siblings; default: 1.", "40"),
      field<A>("Users", Form{.kind = Form::Kind::map, .item = Form::Kind::whole}, read_shares,
               "Fairshare of users; others have 1.", "{ann: 2}"),
      gpus_field("GrpTRES", &A::grp_gpus, "GPUs of its running jobs and those below it at most."),
      number_field("GrpJobs", &A::grp_jobs, whole(0, 1e9), "Running jobs at most, likewise.",
                   "100"),
  };
  return table;
}

/// A list of blocks with unique names.
template <auto Table, class Item>
Field<SlurmSpec> list_of(std::string_view key, std::vector<Item> SlurmSpec::*member,
                         std::string_view doc, std::string_view example) {
  Form form{Form::Kind::list};
  form.fields = &infos_of<Table>;
  return field<SlurmSpec>(
      key, form,
      [member](Reader& r, const YamlNode& n, SlurmSpec& s) {
        std::set<std::string> names;
        r.each(n, [&](const YamlNode& item) {
          Item value;
          if (!read_fields(r, item, Table(), value)) return;
          if (!value.name.empty() && !names.insert(value.name).second)
            r.error(item.find("name")->value.at, fmt::format("'{}' is there twice", value.name),
                    "names are unique");
          (s.*member).push_back(std::move(value));
        });
      },
      doc, example);
}

void read_flags(Reader& reader, const YamlNode& node, SlurmSpec& slurm) {
  const std::vector<std::string> known{"NO_FAIR_TREE"};
  if (reader.word(node, known)) slurm.no_fair_tree = true;
}

Field<SlurmSpec> weight(std::string_view key, int SlurmSpec::*member, std::string_view doc) {
  return number_field(key, member, whole(0, kMostWeight), doc, "1000");
}

}  // namespace

const Fields<SlurmSpec>& slurm_fields() {
  using S = SlurmSpec;
  Form flags{Form::Kind::word};
  flags.words = {"NO_FAIR_TREE"};
  static const Fields<S> table{
      weight("PriorityWeightAge", &S::weight_age,
             "Of the time waited over PriorityMaxAge; default: 0, as of all weights."),
      weight("PriorityWeightFairshare", &S::weight_fairshare, "Of the fair-share factor."),
      weight("PriorityWeightJobSize", &S::weight_job_size, "Of GPUs over those of the cluster."),
      weight("PriorityWeightPartition", &S::weight_partition, "Of the partition's factor."),
      weight("PriorityWeightQOS", &S::weight_qos, "Of the QOS's priority."),
      number_field("PriorityMaxAge", &S::max_age, duration_above_zero(), "Default: 7d.", "7d"),
      number_field("PriorityDecayHalfLife", &S::decay_half_life, duration_above_zero(),
                   "Of the usage that fair shares count; default: 7d.", "7d"),
      number_field("PriorityCalcPeriod", &S::calc_period,
                   Form{Form::Kind::duration, 1, kLongestTime},
                   "Between two calculations of priorities; default: 5min.", "5min"),
      boolean_field("PriorityFavorSmall", &S::favor_small,
                    "Small jobs have the high size factor; default: large ones.", "true"),
      field<S>("PriorityFlags", flags, read_flags,
               "NO_FAIR_TREE: the classic fair-share formula; default: Fair Tree.", "NO_FAIR_TREE"),
      number_field("bf_max_job_test", &S::bf_max_job_test, whole(1, 1e6),
                   "Jobs that one look at the queue tries, the first by priority; default: 500.",
                   "500"),
      word_field("PreemptMode", &S::preempt_mode,
                 "REQUEUE, CANCEL: jobs of a QOS are requeued or cancelled for those of one that "
                 "lists it under Preempt (PreemptType=preempt/qos). SUSPEND: they keep their GPUs, "
                 "so that nobody starts for it. Default: OFF.",
                 "REQUEUE"),
      number_field("PreemptExemptTime", &S::preempt_exempt_time, duration_from_zero(),
                   "A job runs so long before it may be preempted; default: 0s.", "10min"),
      boolean_field("preempt_youngest_first", &S::preempt_youngest_first,
                    "Who started last is preempted first; default: the lowest QOS priority, then "
                    "the smallest job.",
                    "true"),
      number_field("requeue_delay", &S::requeue_delay, duration_from_zero(),
                   "A requeued job starts again no sooner (cred_expire of AuthInfo, and a "
                   "second); default: 121s.",
                   "121s"),
      number_field("checkpoint", &S::checkpoint, duration_from_zero(),
                   "A requeued job goes on from the last multiple of it; 0s: from where it was. "
                   "Default: it starts again.",
                   "30min"),
      list_of<partition_fields>("partitions", &S::partitions,
                                "PartitionName lines; default: one with all nodes.",
                                "[{name: batch, Nodes: [a100], MaxTime: 2d}]"),
      list_of<qos_fields>("qos", &S::qos, "QOS and their limits, as of sacctmgr.",
                          "[{name: high, Priority: 100, MaxTRESPU: gres/gpu=16}]"),
      list_of<account_fields>("accounts", &S::accounts,
                              "Accounts and their shares; teams without one have 1.",
                              "[{name: vision, Fairshare: 40}]"),
  };
  return table;
}

void check_slurm(Reader& reader, const YamlNode& node, const SlurmSpec& slurm) {
  const auto is_account = [&](const std::string& name) {
    return std::ranges::any_of(slurm.accounts, [&](const auto& a) { return a.name == name; });
  };
  const auto* qos = node.find("qos");
  for (const SlurmQosSpec& q : slurm.qos)
    for (const std::string& name : q.preempt) {
      const auto is_it = [&](const SlurmQosSpec& other) { return other.name == name; };
      if (std::ranges::any_of(slurm.qos, is_it)) continue;
      reader.error(qos->key_at,
                   fmt::format("QOS '{}' preempts '{}', which is not there", q.name, name),
                   "Preempt: names of other QOS");
    }
  const bool preempts =
      std::ranges::any_of(slurm.qos, [](const SlurmQosSpec& q) { return !q.preempt.empty(); });
  if (preempts && slurm.preempt_mode == SlurmPreemptMode::off)
    reader.error(qos->key_at, "a QOS preempts others, and PreemptMode is OFF",
                 "PreemptMode: REQUEUE");
  const auto* accounts = node.find("accounts");
  for (std::size_t k = 0; k < slurm.accounts.size() && accounts != nullptr; ++k) {
    // A chain longer than there are accounts runs in a circle.
    std::string above = slurm.accounts[k].parent;
    std::size_t steps = 0;
    while (!above.empty() && above != "root" && is_account(above) &&
           ++steps <= slurm.accounts.size())
      above = std::ranges::find_if(slurm.accounts, [&](const auto& a) {
                return a.name == above;
              })->parent;
    if (above.empty() || above == "root") continue;
    reader.error(accounts->key_at,
                 is_account(above)
                     ? fmt::format("account '{}' is its own parent", slurm.accounts[k].name)
                     : fmt::format("account '{}' has the parent '{}', which is not there",
                                   slurm.accounts[k].name, above),
                 "Parent: the name of another account, or root");
  }
}

}  // namespace reckon
