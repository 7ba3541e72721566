#include <algorithm>
#include <barrier>
#include <functional>
#include <thread>

#include "executor/probe/probe.h"

namespace reckon {
namespace {

constexpr std::int64_t kExtents[] = {8, 32, 128, 512};
constexpr Bytes kArrays[] = {Bytes{16 << 10}, Bytes{128 << 10}, Bytes{1 << 20}, Bytes{8 << 20},
                             Bytes{64 << 20}};

using Item = std::function<ProbeRecord(const ProbeBench&)>;

std::vector<Item> items(Bytes largest) {
  std::vector<Item> all;
  for (const std::int64_t m : kExtents)
    for (const std::int64_t n : kExtents)
      for (const std::int64_t k : kExtents)
        all.emplace_back([m, n, k](const ProbeBench& bench) {
          return probe_product(bench, {m, n, k});
        });
  for (const Bytes array : kArrays)
    if (array <= largest)
      all.emplace_back(
          [array](const ProbeBench& bench) { return probe_memory(bench, array).front(); });
  return all;
}

/// The thread in the middle, by its median.
ProbeRecord middle(std::vector<ProbeRecord> of_threads) {
  const auto half = of_threads.begin() + std::ptrdiff_t(of_threads.size() / 2);
  std::ranges::nth_element(of_threads, half, {}, &ProbeRecord::median);
  half->processes = int(of_threads.size());
  return *half;
}

/// Each item by `threads` threads at once, each by itself.
std::vector<ProbeRecord> apart(int threads, const RepeatRule& rule, const std::vector<Item>& all) {
  std::vector<std::vector<ProbeRecord>> found(
      all.size(), std::vector<ProbeRecord>(static_cast<std::size_t>(threads)));
  std::barrier together(threads);
  const auto measure = [&](std::size_t thread) {
    Workers alone(1);
    for (std::size_t i = 0; i < all.size(); ++i) {
      together.arrive_and_wait();
      found[i][thread] = all[i]({alone, rule});
    }
  };
  {
    std::vector<std::jthread> running;
    for (int t = 1; t < threads; ++t) running.emplace_back(measure, std::size_t(t));
    measure(0);
  }
  std::vector<ProbeRecord> out;
  for (auto& of_threads : found) out.push_back(middle(std::move(of_threads)));
  return out;
}

}  // namespace

std::vector<ProbeRecord> probe_processor(int threads, const RepeatRule& rule, Bytes largest) {
  const std::vector<Item> all = items(largest);
  std::vector<ProbeRecord> out;
  {
    Workers workers(threads);
    for (const Item& item : all) out.push_back(item({workers, rule}));
  }
  if (threads > 1) std::ranges::move(apart(threads, rule, all), std::back_inserter(out));
  return out;
}

}  // namespace reckon
