#include <catch2/catch.hpp>

#include "sim/catalog/precision.h"

using namespace reckon;

TEST_CASE("each precision is read back from its own text") {
  for (Precision p : kPrecisions) CHECK(from_text<Precision>(to_text(p)) == p);
  CHECK(to_text(Precision::bf16) == "bf16");
  CHECK_FALSE(from_text<Precision>("fp64").has_value());
  CHECK_FALSE(from_text<Precision>("").has_value());
}

TEST_CASE("tf32 keeps its elements in 4 bytes, nvfp4 in half a byte") {
  CHECK(bytes_per_element(Precision::fp32) == Bytes{4});
  CHECK(bytes_per_element(Precision::tf32) == Bytes{4});
  CHECK(bytes_per_element(Precision::fp16) == Bytes{2});
  CHECK(bytes_per_element(Precision::bf16) == Bytes{2});
  CHECK(bytes_per_element(Precision::fp8) == Bytes{1});
  CHECK(bytes_per_element(Precision::mxfp8) == Bytes{1});
  CHECK(bytes_per_element(Precision::nvfp4) == Bytes{0.5});
}
