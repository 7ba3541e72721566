#include "sim/queue/packing/load.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "sim/base/check.h"
#include "sim/queue/packing/go_random.h"
#include "sim/queue/packing/pod_scheduler.h"

namespace reckon {
namespace {

constexpr Purpose kRandomPlacement{"queue_random_placement"};
// The simulator's scheduler starts ten watches (client-go's reflectors) between drawing pods and
// nodes, each with a random timeout.
constexpr int kWatches = 10;

template <class T>
std::vector<T> counted(std::size_t n) {
  std::vector<T> numbers(n);
  std::iota(numbers.begin(), numbers.end(), T{0});
  return numbers;
}

/// Sums by percent of arrived load.
class CurveSums {
 public:
  explicit CurveSums(double load) : sums_(static_cast<std::size_t>(std::lround(load * 100)) + 2) {}

  void add(double arrived_percent, double gpu, double fragmentation) {
    const auto at = static_cast<std::size_t>(std::nearbyint(arrived_percent));  // ties to even
    if (at >= sums_.size()) return;
    sums_[at].count += 1;
    sums_[at].gpu += gpu;
    sums_[at].fragmentation += fragmentation;
  }

  LoadCurve curve() const {
    LoadCurve out;
    Sum last;
    for (std::size_t k = 1; k + 1 < sums_.size(); ++k) {
      Sum sum = sums_[k];
      if (sum.count == 0) sum = sums_[k - 1] + sums_[k + 1];
      if (sum.count == 0) sum = last;
      last = sum;
      const double count = std::max(sum.count, 1.0);
      out.gpu_percent.push_back(sum.gpu / count);
      out.fragmentation_percent.push_back(sum.fragmentation / count);
    }
    return out;
  }

 private:
  struct Sum {
    double count = 0, gpu = 0, fragmentation = 0;
    friend Sum operator+(const Sum& a, const Sum& b) {
      return {a.count + b.count, a.gpu + b.gpu, a.fragmentation + b.fragmentation};
    }
  };
  std::vector<Sum> sums_;
};

/// Equal requests once, and which one each pod makes.
struct Kinds {
  std::vector<PodRequest> requests;
  std::vector<std::uint32_t> of_pod;
};

Kinds kinds_of(std::span<const PodRequest> pods) {
  Kinds kinds;
  std::map<PodRequest, std::uint32_t> known;
  for (const PodRequest& pod : pods) {
    const auto [at, added] = known.try_emplace(pod, std::uint32_t(kinds.requests.size()));
    if (added) kinds.requests.push_back(pod);
    kinds.of_pod.push_back(at->second);
  }
  return kinds;
}

}  // namespace

LoadDraws draw_load(std::span<const PodRequest> pods, std::size_t nodes, std::int64_t gpu_milli,
                    double load, std::uint64_t seed) {
  GoRandom random(seed);
  (void)random.int63();  // which the simulator logs
  LoadDraws draws;
  draws.pods = counted<std::uint32_t>(pods.size());
  auto& order = draws.pods;
  for (std::size_t k = order.size(); k > 1; --k)
    std::swap(order[k - 1], order[std::size_t(random.below_for_shuffle(std::int32_t(k)))]);
  const double wanted = load * double(gpu_milli);
  std::int64_t asked = 0;
  for (const PodRequest& pod : pods) asked += pod.gpu_milli_in_all();
  const bool reachable = asked > 0;  // else no number of them reaches the load
  const auto draw = [&](std::size_t n) { return std::size_t(random.below(std::int32_t(n))); };
  if (double(asked) > wanted) {
    while (double(asked) > wanted) {
      const std::size_t k = draw(order.size());
      asked -= pods[order[k]].gpu_milli_in_all();
      order.erase(order.begin() + static_cast<std::ptrdiff_t>(k));
    }
  } else if (double(asked) < wanted && reachable) {
    for (;;) {
      const std::size_t k = draw(pods.size());
      if (double(asked + pods[k].gpu_milli) > wanted) break;
      asked += pods[k].gpu_milli_in_all();
      order.push_back(static_cast<std::uint32_t>(k));
    }
  }
  for (int k = 0; k < kWatches; ++k) (void)random.int63();
  for (std::size_t k = 0; k < nodes; ++k) {  // rand.Perm
    const std::size_t j = draw(k + 1);
    draws.ranks.push_back(0);
    draws.ranks[k] = draws.ranks[j];
    draws.ranks[j] = static_cast<int>(k);
  }
  return draws;
}

LoadRun run_load(std::span<const GpuNode> nodes, std::span<const PodRequest> pods,
                 SchedulingPolicy policy, double load, std::uint64_t seed) {
  GpuModels models;
  for (const GpuNode& node : nodes) RECKON_CHECK(models.add(node.model) >= 0);
  const Fragmentation fragmentation(typical_pods(pods), models);
  const Kinds kinds = kinds_of(pods);
  LoadRun run;
  for (const GpuNode& node : nodes) run.gpu_milli += std::int64_t{node.gpus} * kWholeGpu;
  RECKON_CHECK(run.gpu_milli > 0);
  const LoadDraws draws = draw_load(pods, nodes.size(), run.gpu_milli, load, seed);
  PodScheduler scheduler(nodes, models, draws.ranks, kinds.requests, fragmentation,
                         make_placement(policy, fragmentation),
                         RandomStream(seed, 0, kRandomPlacement, 0));
  const double percent = 100.0 / double(run.gpu_milli);
  CurveSums sums(load);
  std::int64_t asked = 0;
  for (const std::uint32_t pod : draws.pods) {
    ++run.arrived;
    asked += pods[pod].gpu_milli_in_all();
    if (scheduler.place(kinds.of_pod[pod])) ++run.placed;
    const double left = double(run.gpu_milli - scheduler.gpu_milli_used());
    run.fragmentation_percent = left > 0 ? 100 * scheduler.fragmented_milli() / left : 0;
    sums.add(double(asked) * percent, double(scheduler.gpu_milli_used()) * percent,
             run.fragmentation_percent);
  }
  run.gpu_milli_used = scheduler.gpu_milli_used();
  run.curve = sums.curve();
  return run;
}

}  // namespace reckon
