#include "executor/probe/device/device_probe.h"

#include <set>

#include "gpu/device.h"
#include "sim/model/zoo/zoo.h"

using namespace reckon;

namespace {

constexpr RepeatRule kShort{.budget = Seconds{1e-3}, .at_least = 2, .at_most = 3};

void check_times(const ProbeRecord& r) {
  INFO(r.kind << ": " << r.item);
  CHECK(r.device == "a device");
  CHECK(r.min.count() > 0);
  CHECK(r.median >= r.min);
  CHECK(r.p99 >= r.median);
  CHECK(r.repetitions >= 2);
}

struct Bench {
  cuda::Products products{nullptr};
  DeviceBench bench{nullptr, products, "a device", kShort};
};

}  // namespace

TEST_CASE("a device's memory, copies, launches and products are measured with what they moved") {
  require_device();
  const Bench b;
  const auto memory = probe_device_memory(b.bench, Bytes{65536});
  REQUIRE(memory.size() == 1);
  check_times(memory[0]);
  CHECK(memory[0].bytes.v == 3 * 65536);
  const auto copies = probe_device_copies(b.bench, Bytes{131072});
  REQUIRE(copies.size() == 10);  // five ways, two sizes
  std::set<std::string> items;
  for (const ProbeRecord& r : copies) {
    check_times(r);
    items.insert(r.item);
  }
  CHECK(items.size() == copies.size());
  const auto launches = probe_launch(b.bench);
  REQUIRE(launches.size() == 2);
  for (const ProbeRecord& r : launches) check_times(r);
  const auto products = probe_device_products(b.bench, 64);
  REQUIRE(products.size() == 8);  // one square and three with few rows, bf16 and fp32
  for (const ProbeRecord& r : products) {
    check_times(r);
    CHECK(r.flops.v == 2.0 * double(r.m) * double(r.n) * double(r.k));
  }
  CHECK(products.front().precision == "bf16");
  CHECK(products.back().precision == "fp32");
}

TEST_CASE("products are measured on numbers, not on zeros, which take less power") {
  require_device();
  cuda::DeviceBuffer<Bf16> made = device_numbers<Bf16>(3000);
  std::vector<Bf16> host(3000);
  cuda::copy_to_host(host.data(), made.data(), host.size() * sizeof(Bf16));
  int zeros = 0;
  for (const Bf16 x : host) {
    CHECK(std::abs(to_float(x)) <= 0.5f);
    zeros += to_float(x) == 0 ? 1 : 0;
  }
  CHECK(zeros < 30);
}

TEST_CASE("a device's layers are measured at the model's shapes") {
  require_device();
  const Bench b;
  const ModelGraph model = std::move(*make_transformer("gpt2", {.layers = 2,
                                                                .hidden = 64,
                                                                .heads = 2,
                                                                .vocabulary = 61,
                                                                .sequence_length = 32,
                                                                .positions = 32}));
  const auto records = probe_device_model(b.bench, model, 1, 1);
  REQUIRE(records.size() == 2);  // one attention, one linear layer
  for (const ProbeRecord& r : records) {
    check_times(r);
    CHECK(r.precision == "bf16");
    CHECK(r.flops.v > 0);
  }
  CHECK(records[0].kind == "attention");
  CHECK(records[1].kind == "matrix_product");
  CHECK(records[1].m == 32);
}
