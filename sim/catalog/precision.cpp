#include "sim/catalog/precision.h"

#include <utility>

#include "sim/base/check.h"

namespace reckon {
namespace {

struct Row {
  Precision precision;
  std::string_view text;
  double bytes;
};
constexpr std::array<Row, kPrecisions.size()> kRows{{{Precision::fp32, "fp32", 4},
                                                     {Precision::tf32, "tf32", 4},
                                                     {Precision::fp16, "fp16", 2},
                                                     {Precision::bf16, "bf16", 2},
                                                     {Precision::fp8, "fp8", 1},
                                                     {Precision::mxfp8, "mxfp8", 1},
                                                     {Precision::nvfp4, "nvfp4", 0.5}}};

const Row& row(Precision p) {
  const auto i = static_cast<std::size_t>(p);
  RECKON_CHECK(i < kRows.size());
  RECKON_CHECK(kRows[i].precision == p);
  return kRows[i];
}

}  // namespace

std::string_view to_text(Precision p) { return row(p).text; }

std::optional<Precision> precision_from_text(std::string_view text) {
  for (const Row& r : kRows) {
    if (r.text == text) return r.precision;
  }
  return std::nullopt;
}

Bytes bytes_per_element(Precision p) { return Bytes{row(p).bytes}; }

}  // namespace reckon
