#include "sim/queue/backfill/waiting_jobs.h"

#include <rapidcheck.h>
#include <catch2/catch.hpp>
#include <chrono>
#include <limits>

#include "sim/base/random.h"
#include "sim/queue/multifactor/multifactor.h"
#include "sim/queue/plain_backfill.h"

using namespace reckon;

namespace {

/// Far more jobs than there is room for, of three sizes of nodes in two cells.
JobList crowded(int jobs) {
  JobList list;
  for (int k = 0; k < jobs; ++k) {
    const auto length = std::chrono::seconds(*rc::gen::inRange(0, 60));
    std::optional<SimDuration> limit;
    if (*rc::gen::inRange(0, 3) > 0)
      limit = length + std::chrono::seconds(*rc::gen::inRange(-5, 60));
    JobRequest job = recorded_job(SimTime{} + std::chrono::seconds(*rc::gen::inRange(0, 40)),
                                  length, *rc::gen::inRange(1, 12), limit);
    job.owner.user = list.names.users.number(*rc::gen::inRange(0, 2) ? "u" : "v");
    job.owner.team = list.names.teams.number(*rc::gen::inRange(0, 2) ? "t" : "s");
    job.owner.queue = list.names.queues.number(*rc::gen::inRange(0, 2) ? "p0" : "p1");
    job.owner.qos = list.names.qos.number(*rc::gen::inRange(0, 2) ? "q" : "");
    list.jobs.push_back(job);
  }
  return list;
}

std::vector<NodeGroup> some_groups() {
  return {{*rc::gen::inRange(1, 5), 4, 0},
          {*rc::gen::inRange(0, 3), 8, 0},
          {*rc::gen::inRange(1, 3), 2, 1}};
}

SlurmSpec some_slurm() {
  SlurmSpec slurm;
  slurm.weight_age = 1000;
  slurm.weight_fairshare = *rc::gen::inRange(0, 3) * 500;
  slurm.weight_job_size = *rc::gen::inRange(0, 2) * 300;
  slurm.weight_partition = *rc::gen::inRange(0, 2) * 200;
  slurm.weight_qos = *rc::gen::inRange(0, 2) * 200;
  slurm.max_age = Seconds{30};
  slurm.calc_period = Seconds{7};
  slurm.decay_half_life = Seconds{50};
  slurm.bf_max_job_test = *rc::gen::inRange(1, 12);
  slurm.partitions = {{.name = "p0", .nodes = {}, .priority_job_factor = 2, .is_default = true},
                      {.name = "p1", .nodes = {}}};
  slurm.qos = {{.name = "q", .priority = 3, .grp_gpus = 14, .max_gpus_per_user = 11}};
  return slurm;
}

struct ByLimit : QueueRules {
  explicit ByLimit(std::span<const JobRequest> of, std::size_t most = 5) : jobs(of), tried(most) {}
  double tie(std::size_t job) const override { return double(longest_time(jobs[job]).count()); }
  std::size_t depth() const override { return tried; }
  std::span<const JobRequest> jobs;
  std::size_t tried;
};

/// By user, jobs of one queue in a cell of their team.
struct ByUser : QueueRules {
  ByUser(const JobList& of, bool reserving) : list(of), reserving(reserving) {}
  double priority(std::size_t job, SimTime) override { return list.jobs[job].owner.user; }
  std::size_t group(std::size_t job) const override {
    return std::size_t(list.jobs[job].owner.user * 4 + list.jobs[job].owner.queue * 2);
  }
  CellSet cells(std::size_t job) const override {
    return list.jobs[job].owner.queue == 0 ? kAllCells : CellSet{1} << list.jobs[job].owner.team;
  }
  bool reserves() const override { return reserving; }
  const JobList& list;
  bool reserving;
};

void expect_same(const QueueRun& fast, const QueueRun& plain) {
  RC_ASSERT(fast.never == plain.never);
  for (std::size_t k = 0; k < plain.jobs.size(); ++k) {
    RC_ASSERT(fast.jobs[k].start == plain.jobs[k].start);
    RC_ASSERT(fast.jobs[k].end == plain.jobs[k].end);
  }
}

}  // namespace

TEST_CASE("the first number below a bound is that of a scan") {
  CHECK(rc::check([] {
    const auto places = std::size_t(*rc::gen::inRange(1, 40));
    FirstBelow tree(places);
    std::vector<std::int64_t> plain(places, FirstBelow::kEmpty);
    for (int k = *rc::gen::inRange(0, 60); k > 0; --k) {
      const auto place = std::size_t(*rc::gen::inRange(0, int(places)));
      plain[place] = *rc::gen::inRange(0, 3) == 0 ? FirstBelow::kEmpty : *rc::gen::inRange(0, 20);
      plain[place] == FirstBelow::kEmpty ? tree.clear(place) : tree.set(place, plain[place]);
      const auto from = std::size_t(*rc::gen::inRange(0, int(places) + 2));
      const std::int64_t bound = *rc::gen::inRange(0, 22);
      std::size_t first = from;
      while (first < places && plain[first] >= bound) ++first;
      RC_ASSERT(tree.find(from, bound) == (first < places ? first : FirstBelow::kNowhere));
    }
  }));
}

TEST_CASE("backfill by lanes starts every job when a scan of the whole queue starts it") {
  CHECK(rc::check("EASY", [] {
    const JobList list = crowded(*rc::gen::inRange(1, 200));
    const auto groups = some_groups();
    QueueRules one, two;
    expect_same(run_backfill(list.jobs, groups, one, 0, list.jobs.size()),
                test::plain_backfill(list.jobs, groups, two));
  }));
  CHECK(rc::check("the shortest limit first, five at a look", [] {
    const JobList list = crowded(*rc::gen::inRange(1, 80));
    const auto groups = some_groups();
    ByLimit one(list.jobs), two(list.jobs);
    expect_same(run_backfill(list.jobs, groups, one, 0, list.jobs.size()),
                test::plain_backfill(list.jobs, groups, two));
  }));
  constexpr std::size_t kAll = std::numeric_limits<std::size_t>::max();
  CHECK(rc::check("the shortest limit first, all at a look", [] {
    const JobList list = crowded(*rc::gen::inRange(1, 200));
    const auto groups = some_groups();
    ByLimit one(list.jobs, kAll), two(list.jobs, kAll);
    expect_same(run_backfill(list.jobs, groups, one, 0, list.jobs.size()),
                test::plain_backfill(list.jobs, groups, two));
  }));
  CHECK(rc::check("priorities and cells, with reservations or without", [] {
    const JobList list = crowded(*rc::gen::inRange(1, 200));
    const auto groups = some_groups();
    const bool reserving = *rc::gen::inRange(0, 3) > 0;
    ByUser one(list, reserving), two(list, reserving);
    expect_same(run_backfill(list.jobs, groups, one, 0, list.jobs.size()),
                test::plain_backfill(list.jobs, groups, two));
  }));
  CHECK(rc::check("Slurm", [] {
    const JobList list = crowded(*rc::gen::inRange(1, 80));
    const auto groups = some_groups();
    const SlurmSpec slurm = some_slurm();
    const PartitionCells cells{{kAllCells, CellSet{1}}};
    MultifactorRules one(list, slurm, cells, gpus_of(groups));
    MultifactorRules two(list, slurm, cells, gpus_of(groups));
    expect_same(run_backfill(list.jobs, groups, one, 0, list.jobs.size()),
                test::plain_backfill(list.jobs, groups, two));
  }));
}

TEST_CASE(
    "jobs that run when the clock starts end when they are due, on the nodes that they hold") {
  // Two nodes of 4. Job 0 holds node 1 for 10 s more, job 1 wants both, job 2 one for 5 s.
  const auto seconds = [](int s) { return std::chrono::seconds(s); };
  const std::vector<JobRequest> jobs{recorded_job({}, seconds(10), 4),
                                     recorded_job({}, seconds(7), 8),
                                     recorded_job({}, seconds(5), 4)};
  const std::vector<NodeGroup> groups{{2, 4, 0}};
  const std::vector<RunningJob> running{{0, {{1, 4}}}};
  std::vector<Holding> holdings;
  QueueRules rules;
  const QueueRun run = run_backfill(jobs, groups, rules, 0, 3, {running, &holdings});
  CHECK(run.jobs[0].end == SimTime{} + seconds(10));
  CHECK(run.jobs[1].start == SimTime{} + seconds(10));
  CHECK(run.jobs[2].start == SimTime{});  // it ends before job 1 can start
  REQUIRE(holdings.size() == 4);
  CHECK((holdings[0].job == 2 && holdings[0].part.node == 0 &&
         holdings[0].end == SimTime{} + seconds(5)));
  CHECK((holdings[1].job == 0 && holdings[1].part.node == 1 && holdings[1].begin == SimTime{}));
}
