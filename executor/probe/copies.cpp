#include <algorithm>
#include <cstring>

#include "executor/probe/probe.h"
#include "executor/train/products/aligned_buffer.h"
#include "sim/base/unit_text.h"

namespace reckon {

std::vector<ProbeRecord> probe_copies(const ProbeBench& bench, Bytes largest) {
  std::vector<ProbeRecord> out;
  for (const Bytes size : {Bytes{16.0 * 1024}, Bytes{256.0 * 1024}, largest}) {
    const auto count = std::size_t(size.v);
    AlignedBuffer<char> from(count), to(count);
    ProbeRecord r;
    r.kind = "copy";
    r.item = format_bytes(size);
    r.bytes = size;
    constexpr double kBytesARepetition = 16e6;  // about a millisecond
    const auto inner = std::int64_t(std::max(1.0, kBytesARepetition / size.v));
    char seed = 0;
    summarize(repeat_timed(bench.rule, inner,
                           [&] {
                             from.data()[0] = ++seed;  // no two copies are the same one
                             std::memcpy(to.data(), from.data(), count);
                           }),
              r);
    out.push_back(r);
  }
  return out;
}

}  // namespace reckon
