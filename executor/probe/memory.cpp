#include <algorithm>

#include "executor/probe/probe.h"
#include "executor/train/products/aligned_buffer.h"
#include "sim/base/unit_text.h"

namespace reckon {

std::vector<ProbeRecord> probe_memory(const ProbeBench& bench, Bytes array) {
  const auto count = std::int64_t(array.v / sizeof(double));
  AlignedBuffer<double> a{std::size_t(count)}, b{std::size_t(count)}, c{std::size_t(count)};
  std::ranges::fill(b.span(), 1.0);
  std::ranges::fill(c.span(), 2.0);
  const std::int64_t threads = bench.workers.count(), piece = (count + threads - 1) / threads;
  ProbeRecord r;
  r.kind = "memory";
  r.item = "triad over 3 arrays of " + format_bytes(array);
  r.precision = "fp64";
  r.threads = int(threads);
  r.flops = Flops{2.0 * double(count)};
  r.bytes = Bytes{3.0 * double(count) * sizeof(double)};
  summarize(repeat_timed(bench.rule, 1,
                         [&] {
                           bench.workers.run_pieces(count, piece,
                                                    [&](std::int64_t begin, std::int64_t end) {
                                                      double* __restrict to = a.data();
                                                      const double* __restrict x = b.data();
                                                      const double* __restrict y = c.data();
                                                      for (std::int64_t i = begin; i < end; ++i)
                                                        to[i] = x[i] + 3.0 * y[i];
                                                    });
                         }),
            r);
  return {r};
}

}  // namespace reckon
