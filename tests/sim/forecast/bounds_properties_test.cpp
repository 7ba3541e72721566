#include <fmt/format.h>
#include <rapidcheck.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <utility>

#include "sim/base/limits.h"
#include "sim/forecast/replicate.h"
#include "sim/forecast/work.h"
#include "support/scenario_text.h"

// Scenarios at and near every bound that the reader admits: nothing wraps around. Either the reader
// or the plan says what is wrong, or the simulation says that a number is too large, or every
// quantity is what it should be.
using namespace reckon;
using namespace reckon::test;

namespace {

template <class T>
T one_of(std::initializer_list<T> values) {
  return *rc::gen::elementOf(std::vector<T>(values));
}

/// A question about `nodes` machines of one price, which nothing takes away.
struct Extreme {
  std::string nodes, length, samples, bytes, batch, checkpoint;
  double usd_per_hour = 0;

  std::string text(double price) const {
    return fmt::format(R"(name: extreme
workload:
  model: resnet18
  dataset: {{samples: {}, bytes_per_sample: {}}}
  train: {{{}}}
  precision: fp32
  batch_per_accelerator: {}
  strategy: {{kind: multi_worker_mirrored}}
  checkpoint: {{interval: {}}}
cluster:
  provider: on_premises
  pools:
    - name: all
      machine: {{vcpu: 64, memory: 512GiB, network: 100Gbps, price: {:.9f} USD/h}}
      accelerator: {{type: A100-SXM4-80, count: 1}}
      nodes: {}
disruptions: {{preemption: none, maintenance: none, failures: none}}
)",
                       samples, bytes, length, batch, checkpoint, price, nodes);
  }
};

Extreme any_extreme() {
  Extreme e;
  e.nodes = one_of<std::string>({"1", "2", "300", "8192", "65535", "65536", "65537"});
  e.length = one_of<std::string>({"epochs: 1", "epochs: 1e6", "samples: 1e18", "samples: 1",
                                  "steps: 1e12", "steps: 1", "steps: 1e7", "samples: 1e19"});
  e.samples = one_of<std::string>({"1", "1281167", "1e15", "1e16"});
  e.bytes = one_of<std::string>({"1B", "110kB", "1000TB"});
  e.batch = one_of<std::string>({"1", "64", "1e8"});
  e.checkpoint = one_of<std::string>({"none", "1s", "10min", "3650d", "36500d"});
  e.usd_per_hour = one_of({0.01, 200.0, 999'999.0, 1e6, 2e6});
  return e;
}

/// The life, or nothing where the question is refused.
std::optional<std::pair<Plan, LifeResult>> lived(const std::string& text) {
  const auto plan = plan_of(text);
  if (!plan) {
    RC_ASSERT(!plan.error().empty() && !plan.error().front().what.empty());
    return std::nullopt;
  }
  try {
    for (const PlannedWorkload& job : plan->jobs)
      if (!estimate_memory(*plan, job).fits()) return std::nullopt;
    const auto network = make_fluid_network();
    const ForecastSetup setup = make_setup(*plan, *network);
    check_work(setup, 1, 1, WorkLimits{});
    return std::pair(*plan, Replicator(setup).run(1, 0));
  } catch (const Overflow& e) {
    RC_ASSERT(std::string(e.what()).find("beyond") != std::string::npos);
  } catch (const TooMuchWork& e) {
    RC_ASSERT(!e.hint.empty());
  }
  return std::nullopt;
}

void assert_whole(const Plan& plan, const LifeResult& life) {
  const double finish = to_seconds(life.finish - SimTime{}).count();
  RC_ASSERT(finish > 0);
  Int128 time = life.goodput.n, bill = 0;
  RC_ASSERT(life.goodput.n >= 0);
  for (const AcceleratorTime& part : life.badput) {
    RC_ASSERT(part.n >= 0);
    time += part.n;
  }
  RC_ASSERT(time == life.total.n);
  for (const NanoUsd& part : life.cost) {
    RC_ASSERT(part.n >= 0);
    bill += part.n;
  }
  RC_ASSERT(bill == life.bill.n);
  RC_ASSERT(life.steps_done >= 0 && life.steps_done <= plan.jobs.front().steps);
  RC_ASSERT(to_seconds(life.node_time.front()).count() >=
            finish * plan.pools.front().nodes_initial * (1 - 1e-9));
}

}  // namespace

TEST_CASE("at the bounds of the reader no quantity of a life wraps around") {
  int whole = 0, dear = 0;
  CHECK(rc::check([&] {
    const Extreme e = any_extreme();
    const auto life = lived(e.text(e.usd_per_hour));
    if (!life) return;
    ++whole;
    const auto& [plan, result] = *life;
    assert_whole(plan, result);
    // All nodes are paid for from the request at 0 to the end of the one job.
    const double hours = to_seconds(result.finish - SimTime{}).count() / 3600;
    const double least = hours * plan.pools.front().nodes_initial * e.usd_per_hour;
    dear += least > 9.3e9;  // where 64 bits of nano-dollars end
    RC_ASSERT(to_usd(result.bill).v >= least * (1 - 1e-6));
    // Half the price is half the bill, to a nano-dollar for each charge.
    const auto half = lived(e.text(e.usd_per_hour / 2));
    RC_ASSERT(half.has_value());
    RC_ASSERT(half->second.digest == result.digest);
    const double off = to_usd(result.bill).v - 2 * to_usd(half->second.bill).v;
    RC_ASSERT(std::abs(off) <= 1e-6 * to_usd(result.bill).v + 1e-3);
  }));
  CHECK(whole >= 10);
  CHECK(dear >= 3);
}
