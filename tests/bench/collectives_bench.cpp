// Bus bandwidth of an all-reduce between processes of this machine, as nccl-tests defines it: size
// / time, times 2(n-1)/n. Usage: collectives_bench [RANKS] (default 2).
#include <algorithm>
#include <chrono>
#include <cstdlib>

#include <fmt/format.h>

#include "executor/comm/gloo/gloo_communicator.h"
#include "sim/step/network/collectives.h"
#include "support/processes.h"

namespace {
using namespace reckon;
using Clock = std::chrono::steady_clock;

/// Median time of one all-reduce of `count` floats.
Seconds time_of(Communicator& communicator, std::size_t count) {
  std::vector<float> values(count, 1);
  std::vector<double> seconds;
  constexpr int kWarmUps = 3, kRuns = 15;
  for (int run = 0; run < kWarmUps + kRuns; ++run) {
    communicator.barrier();
    const auto begin = Clock::now();
    communicator.all_reduce(std::span(values));
    if (run >= kWarmUps) seconds.push_back(Seconds{Clock::now() - begin}.count());
    std::ranges::fill(values, 1.0F);
  }
  std::ranges::nth_element(seconds, seconds.begin() + kRuns / 2);
  return Seconds{seconds[kRuns / 2]};
}

std::string measure(Communicator& communicator) {
  std::string lines;
  for (std::size_t bytes = 4096; bytes <= (64u << 20); bytes *= 4) {
    const Seconds time = time_of(communicator, bytes / sizeof(float));
    const Bytes size{double(bytes)};
    const BytesPerSecond bus =
        bus_bandwidth(CollectiveKind::all_reduce, size, communicator.size(), time);
    lines += fmt::format("{:>10} {:>12.1f} {:>10.3f} {:>10.3f}\n", bytes, time.count() * 1e6,
                         (size / time).v / 1e9, bus.v / 1e9);
  }
  return lines;
}
}  // namespace

int main(int argc, char** argv) {
  const int ranks = argc > 1 ? std::atoi(argv[1]) : 2;
  if (ranks < 2 || ranks > 64) {
    fmt::print(stderr, "RANKS: 2 to 64\n");
    return 2;
  }
  for (const auto kind : {GlooOptions::AllReduce::direct, GlooOptions::AllReduce::ring}) {
    Socket listener = listen_on({"127.0.0.1", 0});
    RendezvousOptions options{
        .secret = JobSecret::random(), .size = ranks, .master = listener.local()};
    const auto outcomes = run_processes(ranks, [&](int rank) {
      options.rank = rank;
      if (rank != 0) listener.close();
      const auto membership =
          rank == 0 ? Membership::join(options, std::move(listener)) : Membership::join(options);
      return measure(*make_gloo_communicator(*membership, {.all_reduce = kind}));
    });
    fmt::print("{} ranks, {}\n{:>10} {:>12} {:>10} {:>10}\n{}", ranks,
               kind == GlooOptions::AllReduce::ring ? "ring" : "direct", "bytes", "time (us)",
               "algbw GB/s", "busbw GB/s", outcomes[0].output);
  }
  return 0;
}
