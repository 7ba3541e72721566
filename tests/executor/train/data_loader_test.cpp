#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <mutex>
#include <numeric>
#include <set>
#include <vector>

#include "executor/train/data/loader.h"
#include "executor/train/data/order.h"

// In which order samples are read, and by whom.
using namespace reckon;

TEST_CASE("every epoch visits every sample once, in an order of its own") {
  for (const std::int64_t samples : {1, 2, 3, 7, 64, 1000}) {
    INFO(samples);
    std::vector<std::int64_t> first, second;
    for (std::int64_t i = 0; i < samples; ++i) {
      first.push_back(sample_at(5, samples, i));
      second.push_back(sample_at(5, samples, samples + i));
    }
    if (samples == 1000) {
      CHECK(first != second);
      CHECK(!std::ranges::is_sorted(first));
      CHECK(sample_at(6, samples, 0) != first[0]);
    }
    for (auto* epoch : {&first, &second}) {
      std::ranges::sort(*epoch);
      for (std::int64_t i = 0; i < samples; ++i) CHECK((*epoch)[static_cast<std::size_t>(i)] == i);
    }
  }
}

TEST_CASE("the order has no memory of where a sample stood before") {
  // Neighbours of the file should be far apart: the mean distance of two random places of 4096 is
  // 4096 / 3; an order that keeps runs together would be far below.
  double distance = 0;
  for (std::int64_t i = 0; i + 1 < 4096; ++i)
    distance += std::abs(static_cast<double>(sample_at(1, 4096, i) - sample_at(1, 4096, i + 1)));
  CHECK(distance / 4095 == Approx(4096.0 / 3).epsilon(0.05));
}

namespace {

/// Hands out its index.
struct CountingSource : DataSource {
  std::int64_t samples() const override { return 1000; }
  void read(std::int64_t index, SampleBatch& batch, std::int64_t at) const override {
    if (index == broken) throw DataError("sample is broken");
    batch.input(0, at)[0] = static_cast<float>(index);
  }
  std::int64_t broken = -1;
};

std::vector<float> read_steps(const LoaderOptions& options, std::int64_t steps) {
  const CountingSource source;
  const SampleFormat format{.inputs = {{{1}, {}}}};
  DataLoader loader(source, format, options);
  std::vector<float> all;
  for (std::int64_t k = 0; k < steps * options.own / options.micro_batch; ++k) {
    const auto next = loader.next();
    const BatchView view = next.batch->view();
    all.insert(all.end(), view.inputs[0].begin(), view.inputs[0].end());
  }
  return all;
}

}  // namespace

TEST_CASE("ranks, micro-batches and threads share out one order of samples") {
  const std::vector<float> whole =
      read_steps({.seed = 3, .global_batch = 12, .own = 12, .micro_batch = 12}, 20);
  CHECK(std::set<float>(whole.begin(), whole.end()).size() == 240);
  CHECK(read_steps({.seed = 3, .global_batch = 12, .own = 12, .micro_batch = 3, .threads = 3},
                   20) == whole);
  for (const int threads : {5, 20})  // a part of each batch, and more of them than samples
    CHECK(read_steps(
              {.seed = 3, .global_batch = 12, .own = 12, .micro_batch = 12, .threads = threads},
              20) == whole);
  std::vector<std::vector<float>> ranks;
  for (std::int64_t rank = 0; rank < 3; ++rank)
    ranks.push_back(read_steps({.seed = 3,
                                .global_batch = 12,
                                .first_of_step = 4 * rank,
                                .own = 4,
                                .micro_batch = 2,
                                .threads = 2},
                               20));
  std::vector<float> joined;
  for (std::size_t step = 0; step < 20; ++step)
    for (const auto& rank : ranks)
      joined.insert(joined.end(), rank.begin() + static_cast<std::ptrdiff_t>(4 * step),
                    rank.begin() + static_cast<std::ptrdiff_t>(4 * step + 4));
  CHECK(joined == whole);
}

TEST_CASE("a loader resumes at the exact sample") {
  const std::vector<float> whole = read_steps({.global_batch = 5, .own = 5, .micro_batch = 5}, 30);
  const std::vector<float> rest =
      read_steps({.global_batch = 5, .own = 5, .micro_batch = 5, .first_step = 12}, 18);
  CHECK(std::equal(rest.begin(), rest.end(), whole.begin() + 60));
}

TEST_CASE("a sample that cannot be read is an error when its turn comes") {
  CountingSource source;
  source.broken = sample_at(1, 1000, 7);
  const SampleFormat format{.inputs = {{{1}, {}}}};
  DataLoader loader(source, format, {.global_batch = 2, .own = 2, .micro_batch = 2, .threads = 2});
  for (int step = 0; step < 3; ++step) CHECK_NOTHROW(loader.next());
  CHECK_THROWS_AS(loader.next(), DataError);
}

namespace {

/// Each read waits until as many are under way at once.
struct WaitingSource : DataSource {
  explicit WaitingSource(int readers) : wanted(readers) {}
  std::int64_t samples() const override { return 1000; }
  void read(std::int64_t, SampleBatch&, std::int64_t) const override {
    std::unique_lock lock(mutex);
    if (++here >= wanted) came.notify_all();
    if (!came.wait_for(lock, std::chrono::seconds(20), [&] { return here >= wanted; }))
      throw DataError("the other threads read nothing");
  }
  int wanted;
  mutable int here = 0;
  mutable std::mutex mutex;
  mutable std::condition_variable came;
};

}  // namespace

TEST_CASE("all threads read one batch, where no other is asked for") {
  const WaitingSource source(4);
  const SampleFormat format{.inputs = {{{1}, {}}}};
  DataLoader loader(source, format,
                    {.global_batch = 4, .own = 4, .micro_batch = 4, .threads = 4, .prefetch = 1});
  CHECK_NOTHROW(loader.next());
}

TEST_CASE("more threads than a batch has samples read as many batches as they need") {
  const WaitingSource source(12);
  const SampleFormat format{.inputs = {{{1}, {}}}};
  DataLoader loader(source, format,
                    {.global_batch = 2, .own = 2, .micro_batch = 2, .threads = 12, .prefetch = 1});
  CHECK_NOTHROW(loader.next());
}
