#include <rapidcheck.h>
#include <algorithm>
#include <array>
#include <catch2/catch.hpp>

#include "sim/queue/queue_question.h"

// What holds under every policy.
using namespace reckon;

namespace {

constexpr std::array kTestedPolicies{SchedulingPolicy::fifo, SchedulingPolicy::easy_backfill,
                                     SchedulingPolicy::sjf,  SchedulingPolicy::srtf,
                                     SchedulingPolicy::las,  SchedulingPolicy::slurm,
                                     SchedulingPolicy::kueue};

QueueQuestion random_question(SchedulingPolicy policy) {
  QueueQuestion q;
  q.scheduler.policy = policy;
  q.groups = {{*rc::gen::inRange(1, 4), 4, 0}, {*rc::gen::inRange(1, 3), 2, 1}};
  q.pools = {"large", "small"};
  q.partitions.of_partition = {kAllCells, CellSet{1}};
  SlurmSpec slurm;
  slurm.weight_age = 1000;
  slurm.weight_fairshare = 2000;
  slurm.calc_period = Seconds{7};
  slurm.decay_half_life = Seconds{50};
  slurm.partitions = {{.name = "p0", .nodes = {}, .is_default = true}, {.name = "p1", .nodes = {}}};
  slurm.qos = {{.name = "q", .max_gpus_per_user = 5}, {.name = "low"}};
  if (*rc::gen::inRange(0, 2) == 1) {
    slurm.preempt_mode = SlurmPreemptMode::requeue;
    slurm.qos[0].preempt = {"low"};
    slurm.qos[1].grace_time = Seconds{double(*rc::gen::inRange(0, 20))};
    slurm.requeue_delay = Seconds{3};
  }
  q.scheduler.slurm = slurm;
  KueueSpec kueue;
  if (*rc::gen::inRange(0, 2) == 1) kueue.fair_sharing = {ShareStrategy::final_share};
  if (*rc::gen::inRange(0, 2) == 1) kueue.checkpoint = Seconds{5};
  if (*rc::gen::inRange(0, 2) == 1)  // p0 below a cohort of its own, p1 below all
    kueue.cohorts = {{"p0", "all", {}, {double(*rc::gen::inRange(1, 4))}},
                     {"all", "", {{"large", *rc::gen::inRange(0, 5), {}, {}}}}};
  kueue.topologies = {{"t", {{"rack", 2}, {"host", 1}}}};
  kueue.resource_flavors = {{"large", "t"}, {"small", "t"}};
  for (const char* name : {"p0", "p1"}) {
    ClusterQueueSpec queue;
    queue.name = name;
    queue.cohort = kueue.cohorts.empty() || queue.name == "p1" ? "all" : "p0";
    queue.preemption = {ReclaimPolicy::any, WithinPolicy::lower_or_newer_equal};
    if (kueue.fair_sharing.empty() && *rc::gen::inRange(0, 2) == 1)
      queue.preemption.borrow_within_cohort = {BorrowWithinPolicy::lower_priority,
                                               *rc::gen::inRange(0, 3)};
    queue.flavors = {{"large", *rc::gen::inRange(0, 9), {}, {}},
                     {"small", *rc::gen::inRange(0, 5), {}, 1}};
    kueue.cluster_queues.push_back(queue);
  }
  q.scheduler.kueue = kueue;
  const int jobs = *rc::gen::inRange(1, 50);
  for (int k = 0; k < jobs; ++k) {
    JobRequest job =
        recorded_job(SimTime{} + std::chrono::seconds(*rc::gen::inRange(0, 100)),
                     std::chrono::seconds(*rc::gen::inRange(0, 60)), *rc::gen::inRange(1, 12));
    job.owner.user = q.list.names.users.number(*rc::gen::inRange(0, 2) ? "u" : "v");
    job.owner.team = q.list.names.teams.number(*rc::gen::inRange(0, 2) ? "t" : "s");
    job.owner.queue = q.list.names.queues.number(*rc::gen::inRange(0, 2) ? "p0" : "p1");
    job.owner.qos = q.list.names.qos.number(
        *rc::gen::element(std::string("q"), std::string("low"), std::string()));
    job.owner.topology = q.list.names.topologies.number(
        policy == SchedulingPolicy::kueue
            ? *rc::gen::element(std::string("rack"), std::string("host"), std::string())
            : "");
    job.owner.topology_required = *rc::gen::inRange(0, 2) == 1;
    job.owner.priority = *rc::gen::inRange(0, 3);
    q.list.jobs.push_back(job);
  }
  return q;
}

bool keeps_length(const QueueQuestion& q) {
  const SchedulingPolicy policy = q.scheduler.policy;
  return policy != SchedulingPolicy::srtf && policy != SchedulingPolicy::las &&
         policy != SchedulingPolicy::kueue &&
         (policy != SchedulingPolicy::slurm ||
          q.scheduler.slurm->preempt_mode == SlurmPreemptMode::off);
}

/// No node gives more than it has, and who requires a rack of Kueue has one.
void check_holdings(const QueueQuestion& q, const std::vector<Holding>& holdings) {
  std::vector<int> gpus, rack;  // by node; racks of a pool are of two nodes
  for (const NodeGroup& group : q.groups)
    for (int k = 0; k < group.nodes; ++k) {
      gpus.push_back(group.gpus);
      rack.push_back(group.cell * 100 + k / 2);
    }
  for (const Holding& h : holdings) {
    int in_use = 0;
    const JobOwner& owner = q.list.jobs[h.job].owner;
    const bool one_rack =
        owner.topology_required && q.list.names.topologies.name(owner.topology) == "rack";
    for (const Holding& other : holdings) {
      if (other.begin > h.begin || other.end <= h.begin) continue;
      if (other.part.node == h.part.node) in_use += other.part.gpus;
      if (one_rack && other.job == h.job)
        RC_ASSERT(rack[std::size_t(other.part.node)] == rack[std::size_t(h.part.node)]);
    }
    RC_ASSERT(in_use <= gpus[std::size_t(h.part.node)]);
  }
}

}  // namespace

TEST_CASE("no policy uses more than there is, forgets a job, or loses GPU time") {
  for (const SchedulingPolicy policy : kTestedPolicies) {
    INFO(to_text(policy));
    const bool held = rc::check("capacity, completeness, conservation", [&] {
      const QueueQuestion q = random_question(policy);
      std::vector<Holding> holdings;
      RunOptions options;
      options.holdings = &holdings;
      const QueueRun r = run_queue(q, q.list, 0, q.list.jobs.size(), options);
      check_holdings(q, holdings);
      const int gpus = gpus_of(q.groups);
      double asked = 0;
      std::size_t never = 0;
      for (std::size_t k = 0; k < q.list.jobs.size(); ++k) {
        const bool runs = !std::binary_search(r.never.begin(), r.never.end(), k);
        never += runs ? 0 : 1;
        // Whoever can run does so, and whoever cannot has a reason.
        RC_ASSERT(runs == r.jobs[k].end.has_value());
        RC_ASSERT(runs == why_never(q, q.list, std::array{k}).front().empty());
        if (!runs) continue;
        const SimDuration length = std::get<FixedTime>(q.list.jobs[k].work).time;
        RC_ASSERT(*r.jobs[k].start >= q.list.jobs[k].submit);
        RC_ASSERT(*r.jobs[k].end - *r.jobs[k].start >= length);
        asked += to_seconds(length).count() * q.list.jobs[k].gpus();
        if (!keeps_length(q)) continue;
        RC_ASSERT(*r.jobs[k].end - *r.jobs[k].start == length);
        int in_use = 0;
        for (std::size_t m = 0; m < q.list.jobs.size(); ++m)
          if (r.jobs[m].start && *r.jobs[m].start <= *r.jobs[k].start &&
              *r.jobs[k].start < *r.jobs[m].end)
            in_use += q.list.jobs[m].gpus();
        RC_ASSERT(in_use <= gpus);
      }
      RC_ASSERT(never == r.never.size());
      // What is evicted without a checkpoint is done twice; else not a second more or less.
      if (policy == SchedulingPolicy::kueue || policy == SchedulingPolicy::slurm)
        RC_ASSERT(r.gpu_seconds >= asked - 1e-6);
      else
        RC_ASSERT(std::abs(r.gpu_seconds - asked) < 1e-6);
      RC_ASSERT(r.gpu_seconds <= gpus * r.makespan_seconds + 1e-6);
    });
    CHECK(held);
  }
}
