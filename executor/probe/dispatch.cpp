#include <fmt/format.h>

#include "executor/probe/probe.h"

namespace reckon {

std::vector<ProbeRecord> probe_dispatch(const ProbeBench& bench) {
  const int threads = bench.workers.count();
  if (threads == 1) return {};
  ProbeRecord r;
  r.kind = "dispatch";
  r.item = fmt::format("nothing, by {} threads", threads);
  r.threads = threads;
  constexpr std::int64_t kInner = 50;
  summarize(repeat_timed(bench.rule, kInner,
                         [&] { bench.workers.run(threads, [](std::int64_t, int) {}); }),
            r);
  return {r};
}

}  // namespace reckon
