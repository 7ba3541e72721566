#include <sys/wait.h>
#include <unistd.h>
#include <simgrid/s4u.hpp>

#include <catch2/catch.hpp>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "sim/base/random.h"
#include "sim/cluster/lives.h"

// Small lives lived again by SimGrid: nodes are hosts that are switched off when the provider takes
// them and on when their successor is ready, workers are actors that compute one interval after the
// other and save behind each. Nothing of our event loop or closed forms takes part; both clocks
// must agree.
using namespace reckon;
using namespace reckon::test;
namespace s4u = simgrid::s4u;

namespace {

struct SmallLife {
  int nodes = 1;
  double provisioning = 100, start_up = 0, restore = 0, interval = 0, save = 0, work = 1000;  // s
  std::vector<std::vector<double>> taken;  // by node: times, ascending
};

struct Lived {
  double finish = 0;
  int interruptions = 0;
};

constexpr double kSpeed = 1e9;  // flop/s of a host: work of 1 s is 1e9 flop

/// The actors' shared view. SimGrid runs them one at a time.
struct Stage {
  const SmallLife& life;
  std::vector<s4u::Host*> hosts;
  s4u::SemaphorePtr wake = s4u::Semaphore::create(0);
  double saved = 0;  // seconds of work in the last checkpoint
  int working = 0;   // actors that have not come to the end
};

void node(const Stage& stage, std::size_t n) {
  s4u::Host* host = stage.hosts[n];
  for (;;) {
    s4u::this_actor::sleep_for(stage.life.provisioning);
    host->turn_on();
    stage.wake->release();
    const double now = s4u::Engine::get_clock();
    double next = INFINITY;
    for (const double t : stage.life.taken[n]) next = t > now ? std::min(next, t) : next;
    if (std::isinf(next)) return;
    s4u::this_actor::sleep_until(next);
    host->turn_off();
    stage.wake->release();
  }
}

void worker(Stage& stage, const s4u::BarrierPtr& together, bool first) {
  const SmallLife& life = stage.life;
  s4u::this_actor::sleep_for(life.start_up + (stage.saved > 0 ? life.restore : 0));
  for (double done = stage.saved; done < life.work;) {
    const double left = life.work - done;
    const double stretch = life.interval > 0 ? std::min(life.interval, left) : left;
    s4u::this_actor::execute(stretch * kSpeed);
    together->wait();
    done += stretch;
    if (done >= life.work) break;
    s4u::this_actor::sleep_for(life.save);
    together->wait();
    if (first) stage.saved = done;
  }
  --stage.working;
  stage.wake->release();
}

bool all_on(const Stage& stage) {
  for (const s4u::Host* host : stage.hosts)
    if (!host->is_on()) return false;
  return true;
}

void job(Stage& stage, Lived& lived) {
  for (;;) {
    while (!all_on(stage)) stage.wake->acquire();
    auto together = s4u::Barrier::create(unsigned(stage.life.nodes));
    std::vector<s4u::ActorPtr> workers;
    stage.working = stage.life.nodes;
    for (s4u::Host* host : stage.hosts) {
      const bool first = workers.empty();
      workers.push_back(s4u::Actor::create(
          "worker", host, [&stage, together, first] { worker(stage, together, first); }));
    }
    while (all_on(stage) && stage.working > 0) stage.wake->acquire();
    if (stage.working == 0) break;
    ++lived.interruptions;
    for (const s4u::ActorPtr& actor : workers) actor->kill();
  }
  lived.finish = s4u::Engine::get_clock();
}

Lived live_in_simgrid(const SmallLife& life) {
  int argc = 2;
  char program[] = "life", log[] = "--log=root.thres:critical";
  char* argv[] = {program, log, nullptr};
  s4u::Engine engine(&argc, argv);
  auto* zone = s4u::create_full_zone("cluster");
  s4u::Host* control = zone->create_host("control", kSpeed);
  Stage stage{life, {}};
  for (int n = 0; n < life.nodes; ++n)
    stage.hosts.push_back(zone->create_host("node-" + std::to_string(n), kSpeed));
  zone->seal();
  Lived lived;
  for (s4u::Host* host : stage.hosts) host->turn_off();
  for (std::size_t n = 0; n < stage.hosts.size(); ++n) {
    s4u::Actor::create("node", control, [&stage, n] { node(stage, n); })->daemonize();
  }
  s4u::Actor::create("job", control, [&] { job(stage, lived); });
  engine.run();
  return lived;
}

/// One Engine a process: in a child.
Lived referee(const SmallLife& life) {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  std::fflush(stdout);  // or the child prints it again
  const pid_t child = fork();
  if (child == 0) {
    const Lived lived = live_in_simgrid(life);
    const bool written = write(ends[1], &lived, sizeof lived) == sizeof lived;
    _exit(written ? 0 : 1);
  }
  close(ends[1]);
  Lived lived;
  const bool read_all = read(ends[0], &lived, sizeof lived) == sizeof lived;
  close(ends[0]);
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  REQUIRE(read_all);
  return lived;
}

Lived ours(const SmallLife& life) {
  Case c = round_case(life.nodes);
  c.plan.pools[0].provisioning = Fact<Seconds>{Seconds{life.provisioning}};
  c.plan.job_start.framework_start = Fact<Seconds>{Seconds{life.start_up}};
  checkpoints(c, Seconds{life.interval}, Seconds{life.save}, Seconds{life.restore});
  c.pace.steps = 1;
  c.pace.step_by_workers.back() = Seconds{life.work};
  std::vector<std::vector<Seconds>> trace;
  for (const auto& times : life.taken) {
    trace.emplace_back();
    for (const double t : times) trace.back().push_back(Seconds{t});
  }
  reclaim_at(c, std::move(trace));
  const LifeResult lived = c.run();
  REQUIRE(lived.finished);
  return {finish_seconds(lived), int(count(lived, Interruption::preemption))};
}

/// A life in which nodes go every 3,000 s or so.
SmallLife any_life(std::uint32_t k) {
  RandomStream draw(20261121, k, Purpose{"small_life"}, 0);
  SmallLife life;
  life.nodes = 1 + int(draw.uniform() * 4);
  life.provisioning = 50 + 100 * draw.uniform();
  life.start_up = 40 * draw.uniform();
  life.restore = 20 * draw.uniform();
  life.work = 500 + 4000 * draw.uniform();
  if (k % 4 != 0) {
    life.interval = 50 + 200 * draw.uniform();
    life.save = 20 * draw.uniform();
  }
  for (int n = 0; n < life.nodes; ++n) {
    life.taken.emplace_back();
    for (double t = 3000 * draw.exponential(); t < 15'000; t += 3000 * draw.exponential())
      life.taken.back().push_back(t);
  }
  return life;
}

}  // namespace

TEST_CASE("SimGrid's actors on failing hosts live the same lives") {
  int interruptions = 0;
  for (std::uint32_t k = 0; k < 40; ++k) {
    const SmallLife life = any_life(k);
    const Lived theirs = referee(life), own = ours(life);
    INFO("life " << k << " on " << life.nodes << " nodes");
    CHECK(own.interruptions == theirs.interruptions);
    CHECK(own.finish == Approx(theirs.finish).epsilon(1e-9));
    interruptions += own.interruptions;
  }
  CHECK(interruptions >= 40);  // lives in which nothing happens prove nothing
}
