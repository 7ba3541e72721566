#include "sim/queue/multifactor/multifactor.h"
#include "sim/queue/queue_question.h"

#include <catch2/catch.hpp>

using namespace reckon;

namespace {

struct MultifactorJob {
  double submit = 0, duration = 0;
  int gpus = 1;
  std::string team = "", user = "", queue = "", qos = "";
  std::optional<double> limit = {};
};

JobList multifactor_list(const std::vector<MultifactorJob>& asked) {
  JobList list;
  for (const MultifactorJob& a : asked) {
    std::optional<SimDuration> limit;
    if (a.limit) limit = to_clock(Seconds{*a.limit});
    list.jobs.push_back(recorded_job(SimTime{} + to_clock(Seconds{a.submit}),
                                     to_clock(Seconds{a.duration}), a.gpus, limit));
    list.jobs.back().owner = {list.names.users.number(a.user), list.names.teams.number(a.team),
                              list.names.queues.number(a.queue), list.names.qos.number(a.qos), 0};
  }
  return list;
}

const PartitionCells kOne{{kAllCells}};

double multifactor_start(const QueueRun& run, std::size_t k) {
  return double((run.jobs[k].start.value() - SimTime{}) / std::chrono::seconds(1));
}

QueueRun multifactor_run(const JobList& list, const SlurmSpec& slurm, std::vector<NodeGroup> groups,
                         const PartitionCells& cells = kOne) {
  MultifactorRules rules(list, slurm, cells, gpus_of(groups));
  return run_backfill(list.jobs, groups, rules, 0, list.jobs.size());
}

}  // namespace

TEST_CASE("factors of partitions are over the highest, as on Slurm's page") {
  // https://slurm.schedmd.com/priority_multifactor.html, "Job Priority Factors In General".
  SlurmSpec slurm;
  slurm.weight_partition = 5000;
  slurm.partitions = {{.name = "PartitionA", .nodes = {}, .priority_job_factor = 20},
                      {.name = "PartitionB", .nodes = {}, .priority_job_factor = 10}};
  const JobList list = multifactor_list({{.queue = "PartitionA"}, {.queue = "PartitionB"}});
  MultifactorRules rules(list, slurm, {{kAllCells, kAllCells}}, 8);
  CHECK(rules.priority(0, SimTime{}) == 5000);
  CHECK(rules.priority(1, SimTime{}) == 2500);
}

TEST_CASE("age grows to PriorityMaxAge, size is over the cluster, QOS over the highest") {
  SlurmSpec slurm;
  slurm.weight_age = 1000;
  slurm.max_age = Seconds{100};
  slurm.weight_job_size = 800;
  slurm.weight_qos = 100;
  slurm.qos = {{.name = "low", .priority = 5}, {.name = "high", .priority = 20}};
  const JobList list = multifactor_list({{.gpus = 4, .qos = "low"}, {.gpus = 8}});
  const auto at = [](double s) { return SimTime{} + to_clock(Seconds{s}); };
  MultifactorRules rules(list, slurm, kOne, 16);
  CHECK(rules.priority(0, at(0)) == 200 + 25);
  CHECK(rules.priority(0, at(25)) == 250 + 200 + 25);
  CHECK(rules.priority(0, at(500)) == 1000 + 200 + 25);
  CHECK(rules.priority(1, at(0)) == 400);  // no QOS
  slurm.favor_small = true;
  MultifactorRules small(list, slurm, kOne, 16);
  CHECK(small.priority(0, at(0)) == 650 + 25);  // 13 of 16: one GPU would have 1
  CHECK(small.priority(1, at(0)) == 450);
}

TEST_CASE("fair share lets the account that used less go first") {
  SlurmSpec slurm;
  slurm.weight_fairshare = 1000;
  // Job 0 of `busy` fills the node; both accounts wait behind it, `busy` first.
  const JobList list = multifactor_list(
      {{0, 3600, 8, "busy", "ann"}, {60, 100, 8, "busy", "ann"}, {61, 100, 8, "idle", "ben"}});
  const QueueRun fair = multifactor_run(list, slurm, {{1, 8}});
  CHECK(multifactor_start(fair, 2) == 3600);
  CHECK(multifactor_start(fair, 1) == 3700);
  slurm.weight_fairshare = 0;
  CHECK(multifactor_start(multifactor_run(list, slurm, {{1, 8}}), 1) == 3600);
}

TEST_CASE("both fair-share formulas follow the accounts' shares") {
  // Two accounts with 3 and 1 shares submit jobs alike, all at once: of each four that start three
  // are of the first, once its first jobs are used.
  for (const bool classic : {false, true}) {
    SlurmSpec slurm;
    slurm.weight_fairshare = 100'000;
    slurm.no_fair_tree = classic;
    slurm.decay_half_life = Seconds{1e7};
    slurm.calc_period = Seconds{60};
    slurm.accounts = {{.name = "large", .parent = "", .fairshare = 3},
                      {.name = "small", .parent = "", .fairshare = 1}};
    std::vector<MultifactorJob> asked;
    for (int k = 0; k < 400; ++k) asked.push_back({0, 600, 8, k % 2 ? "large" : "small", "u"});
    const JobList list = multifactor_list(asked);
    const QueueRun r = multifactor_run(list, slurm, {{1, 8}});
    int large = 0;
    for (std::size_t k = 0; k < asked.size(); ++k)
      large += asked[k].team == "large" && multifactor_start(r, k) < 200 * 600 ? 1 : 0;
    INFO("classic " << classic);
    CHECK(large == Approx(150).margin(2));
  }
}

TEST_CASE("limits of a QOS hold its users back, and block nobody else") {
  SlurmSpec slurm;
  slurm.qos = {{.name = "normal", .max_gpus_per_user = 2, .max_jobs_per_user = 2}};
  const JobList list = multifactor_list({{0, 100, 2, "t", "ann", "", "normal"},
                                         {1, 100, 1, "t", "ann", "", "normal"},  // MaxTRESPU
                                         {2, 100, 1, "t", "ben", "", "normal"},
                                         {3, 50, 1, "t", "ben", "", "normal"},
                                         {4, 100, 1, "t", "ben", "", "normal"},  // MaxJobsPU
                                         {5, 100, 4, "t", "cem"}});
  const QueueRun r = multifactor_run(list, slurm, {{1, 8}});
  CHECK(multifactor_start(r, 1) == 100);
  CHECK(multifactor_start(r, 2) == 2);
  CHECK(multifactor_start(r, 3) == 3);
  CHECK(multifactor_start(r, 4) == 53);
  CHECK(multifactor_start(r, 5) == 5);  // 8 - 2 - 1 - 1: those who are held back reserve nothing
}

TEST_CASE("limits of groups hold for all jobs of a QOS, and for accounts with those below them") {
  SlurmSpec slurm;
  slurm.qos = {{.name = "batch", .grp_gpus = 4, .max_gpus_per_account = 3}};
  slurm.accounts = {{.name = "lab", .parent = "", .fairshare = 1, .users = {}, .grp_gpus = 5},
                    {.name = "group", .parent = "lab"}};
  const JobList list = multifactor_list({{0, 100, 3, "a", "u", "", "batch"},
                                         {0, 100, 1, "a", "v", "", "batch"},  // MaxTRESPA
                                         {0, 100, 2, "b", "u", "", "batch"},  // GrpTRES of the QOS
                                         {0, 100, 3, "lab", "x"},
                                         {0, 100, 3, "group", "y"},  // GrpTRES of lab
                                         {0, 100, 2, "group", "y"}});
  const QueueRun r = multifactor_run(list, slurm, {{8, 8}});
  CHECK(multifactor_start(r, 0) == 0);
  CHECK(multifactor_start(r, 1) == 100);
  CHECK(multifactor_start(r, 2) == 100);
  CHECK(multifactor_start(r, 3) == 0);
  CHECK(multifactor_start(r, 4) == 100);
  CHECK(multifactor_start(r, 5) == 0);
}

TEST_CASE("a job that a limit excludes never runs, and the limit is told") {
  SlurmSpec slurm;
  slurm.partitions = {{.name = "short", .nodes = {}, .max_time = Seconds{3600}}};
  slurm.qos = {{.name = "q", .max_gpus_per_job = 4, .max_wall = Seconds{600}},
               {.name = "u", .max_gpus_per_user = 2}};
  slurm.accounts = {{.name = "lab", .parent = "", .fairshare = 1, .users = {}, .grp_gpus = 3}};
  const JobList list = multifactor_list({{.duration = 10, .limit = 7200.0},
                                         {.duration = 10, .gpus = 8, .qos = "q"},
                                         {.duration = 10, .qos = "q", .limit = 1200.0},
                                         {.duration = 10, .gpus = 3, .qos = "u"},
                                         {.duration = 10, .gpus = 4, .team = "lab"},
                                         {.duration = 10}});
  MultifactorRules rules(list, slurm, kOne, 16);
  CHECK(rules.never(0) == "it asks for 2 h, and partition 'short' has MaxTime=1 h");
  CHECK(rules.never(1) == "QOS 'q' has MaxTRESPerJob=gres/gpu=4");
  CHECK(rules.never(2) == "it asks for 20 min, and QOS 'q' has MaxWall=10 min");
  CHECK(rules.never(3) == "QOS 'u' has MaxTRESPU=gres/gpu=2");
  CHECK(rules.never(4) == "account 'lab' has GrpTRES=gres/gpu=3");
  CHECK_FALSE(rules.never(5));
  const QueueRun r = multifactor_run(list, slurm, {{2, 8}});
  CHECK(r.never == std::vector<std::size_t>{0, 1, 2, 3, 4});
}

TEST_CASE("partitions keep their jobs on their nodes, and each has its own reservation") {
  SlurmSpec slurm;
  slurm.partitions = {{.name = "a", .nodes = {}},
                      {.name = "b", .nodes = {}},
                      {.name = "all", .nodes = {}, .priority_job_factor = 1}};
  const PartitionCells cells{{CellSet{1}, CellSet{2}, CellSet{3}}};
  const std::vector<NodeGroup> groups{{1, 4, 0}, {1, 4, 1}};
  const JobList list = multifactor_list({{0, 100, 3, "", "", "a"},
                                         {1, 10, 4, "", "", "a"},    // waits for a until 100
                                         {2, 10, 4, "", "", "b"},    // b is free
                                         {3, 10, 4, "", "", "all"},  // b is free again at 12
                                         {4, 200, 1, "", "", "a"},   // would delay job 1
                                         {5, 90, 1, "", "", "a"}});  // ends before 100
  const QueueRun r = multifactor_run(list, slurm, groups, cells);
  CHECK(multifactor_start(r, 1) == 100);
  CHECK(multifactor_start(r, 2) == 2);
  CHECK(multifactor_start(r, 3) == 12);
  CHECK(multifactor_start(r, 4) == 110);
  CHECK(multifactor_start(r, 5) == 5);
}

TEST_CASE("a look tries bf_max_job_test jobs and no more") {
  SlurmSpec slurm;
  const JobList list = multifactor_list({{0, 100, 4}, {1, 10, 8}, {2, 10, 8}, {3, 10, 1}});
  CHECK(multifactor_start(multifactor_run(list, slurm, {{1, 8}}), 3) == 3);
  slurm.bf_max_job_test = 2;
  CHECK(multifactor_start(multifactor_run(list, slurm, {{1, 8}}), 3) == 120);
}

TEST_CASE("a team that is no account is told, with the account that was meant") {
  QueueQuestion question;
  question.scheduler.policy = SchedulingPolicy::slurm;
  question.scheduler.slurm.emplace();
  const JobList list = multifactor_list({{.team = "vision"}, {.team = "intern"}});
  CHECK_FALSE(note_of_accounts(question, list));  // where none is listed, teams are as they come
  question.scheduler.slurm->accounts = {{.name = "vision"}, {.name = "interns"}};
  CHECK(note_of_accounts(question, list) ==
        "team 'intern' is no account of Slurm, so it has a share of 1; did you mean 'interns'?");
  question.scheduler.slurm->accounts.push_back({.name = "intern"});
  CHECK_FALSE(note_of_accounts(question, list));
}

namespace {

/// A node of eight GPUs: scavengers hold it, and `urgent` preempts them.
SlurmSpec with_preemption() {
  SlurmSpec slurm;
  slurm.preempt_mode = SlurmPreemptMode::requeue;
  slurm.qos = {{.name = "scavenger"},
               {.name = "normal", .priority = 10},
               {.name = "urgent", .priority = 100, .preempt = {"scavenger"}}};
  slurm.weight_qos = 1000;
  return slurm;
}
double multifactor_end(const QueueRun& run, std::size_t k) {
  return double((run.jobs[k].end.value() - SimTime{}) / std::chrono::seconds(1));
}

}  // namespace

TEST_CASE("a QOS requeues jobs of those that it lists under Preempt, no more than it needs") {
  SlurmSpec slurm = with_preemption();
  const std::vector<MultifactorJob> asked{
      {.submit = 0, .duration = 100, .gpus = 5, .qos = "scavenger"},
      {.submit = 1, .duration = 100, .gpus = 3, .qos = "scavenger"},
      {.submit = 10, .duration = 20, .gpus = 2, .qos = "urgent"}};
  SECTION("the smaller goes first, starts again after the credential's time, from the beginning") {
    const QueueRun r = multifactor_run(multifactor_list(asked), slurm, {{1, 8, 0}});
    CHECK(multifactor_start(r, 2) == 10);
    CHECK(r.jobs[0].preemptions == 0);
    CHECK(r.jobs[1].preemptions == 1);
    CHECK(multifactor_start(r, 1) == 1);  // its first
    CHECK(multifactor_end(r, 1) == 10 + 121 + 100);
    CHECK(r.gpu_seconds == 5 * 100 + 3 * (9 + 100) + 2 * 20);
  }
  SECTION("with checkpoints it keeps whole intervals") {
    slurm.checkpoint = Seconds{4};
    const QueueRun r = multifactor_run(multifactor_list(asked), slurm, {{1, 8, 0}});
    CHECK(multifactor_end(r, 1) == 10 + 121 + 92);
    CHECK(r.gpu_seconds == 5 * 100 + 3 * (9 + 92) + 2 * 20);
  }
  SECTION("preempt_youngest_first: who started last goes, though it is larger") {
    slurm.preempt_youngest_first = true;
    std::vector<MultifactorJob> turned = asked;
    std::swap(turned[0].gpus, turned[1].gpus);
    const QueueRun r = multifactor_run(multifactor_list(turned), slurm, {{1, 8, 0}});
    CHECK(r.jobs[0].preemptions == 0);
    CHECK(r.jobs[1].preemptions == 1);
  }
  SECTION("nobody goes before PreemptExemptTime, and the job starts when it has passed") {
    slurm.preempt_exempt_time = Seconds{30};
    const QueueRun r = multifactor_run(multifactor_list(asked), slurm, {{1, 8, 0}});
    CHECK(multifactor_start(r, 2) == 30);  // of the first, which is larger
    CHECK(r.jobs[0].preemptions == 1);
    CHECK(r.jobs[1].preemptions == 0);
  }
  SECTION("that of the QOS goes before") {
    slurm.preempt_exempt_time = Seconds{30};
    slurm.qos[0].exempt_time = Seconds{0};
    const QueueRun r = multifactor_run(multifactor_list(asked), slurm, {{1, 8, 0}});
    CHECK(multifactor_start(r, 2) == 10);
  }
  SECTION("a QOS that lists nobody waits, whatever its priority") {
    std::vector<MultifactorJob> normal = asked;
    normal[2].qos = "normal";
    const QueueRun r = multifactor_run(multifactor_list(normal), slurm, {{1, 8, 0}});
    CHECK(multifactor_start(r, 2) == 100);
    CHECK(r.jobs[1].preemptions == 0);
  }
  SECTION("PreemptMode CANCEL: it does not come back") {
    slurm.preempt_mode = SlurmPreemptMode::cancel;
    const QueueRun r = multifactor_run(multifactor_list(asked), slurm, {{1, 8, 0}});
    CHECK(multifactor_start(r, 2) == 10);
    CHECK(r.jobs[1].start);
    CHECK_FALSE(r.jobs[1].end);
    CHECK(r.cancelled == 1);
    CHECK(r.gpu_seconds == 5 * 100 + 3 * 9 + 2 * 20);
  }
  SECTION("PreemptMode SUSPEND: a suspended job keeps its GPUs, so nobody starts for it") {
    slurm.preempt_mode = SlurmPreemptMode::suspend;
    const QueueRun r = multifactor_run(multifactor_list(asked), slurm, {{1, 8, 0}});
    CHECK(multifactor_start(r, 2) == 100);
    CHECK(r.jobs[1].preemptions == 0);
    slurm.preempt_mode = SlurmPreemptMode::requeue;  // and of the QOS alone
    slurm.qos[0].preempt_mode = SlurmPreemptMode::suspend;
    CHECK(multifactor_start(multifactor_run(multifactor_list(asked), slurm, {{1, 8, 0}}), 2) ==
          100);
  }
  SECTION("that of the QOS goes before the cluster's") {
    slurm.qos[0].preempt_mode = SlurmPreemptMode::cancel;
    CHECK(multifactor_run(multifactor_list(asked), slurm, {{1, 8, 0}}).cancelled == 1);
    slurm.qos[0].preempt_mode = SlurmPreemptMode::off;
    const QueueRun r = multifactor_run(multifactor_list(asked), slurm, {{1, 8, 0}});
    CHECK(multifactor_start(r, 2) == 100);
  }
  SECTION("GraceTime: it goes on so long, and the job waits for it") {
    slurm.qos[0].grace_time = Seconds{5};
    const QueueRun r = multifactor_run(multifactor_list(asked), slurm, {{1, 8, 0}});
    CHECK(multifactor_start(r, 2) == 15);
    CHECK(r.jobs[0].preemptions == 0);
    CHECK(multifactor_end(r, 1) == 15 + 121 + 100);
    CHECK(r.gpu_seconds == 5 * 100 + 3 * (14 + 100) + 2 * 20);
  }
  SECTION("GraceTime: who ends within it is not preempted, and one is chosen, not more") {
    slurm.qos[0].grace_time = Seconds{5};
    std::vector<MultifactorJob> short_one = asked;
    short_one[1].duration = 12;
    // Another look at the queue, at 11, chooses nobody else.
    short_one.push_back({.submit = 11, .duration = 1, .gpus = 8, .qos = "normal"});
    const QueueRun r = multifactor_run(multifactor_list(short_one), slurm, {{1, 8, 0}});
    CHECK(multifactor_start(r, 2) == 13);
    CHECK(r.jobs[0].preemptions == 0);
    CHECK(r.jobs[1].preemptions == 0);
  }
  SECTION("PreemptMode OFF") {
    slurm.preempt_mode = SlurmPreemptMode::off;
    const QueueRun r = multifactor_run(multifactor_list(asked), slurm, {{1, 8, 0}});
    CHECK(multifactor_start(r, 2) == 100);
  }
  SECTION("nobody goes where that makes no room") {
    std::vector<MultifactorJob> large = asked;
    large[0].qos = "normal";
    large[2].gpus = 4;
    const QueueRun r = multifactor_run(multifactor_list(large), slurm, {{1, 8, 0}});
    CHECK(multifactor_start(r, 2) == 100);
    CHECK(r.jobs[1].preemptions == 0);
  }
}
