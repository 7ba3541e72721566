#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cmath>
#include <set>

#include "sim/catalog/catalog.h"
#include "sim/catalog/operations_keys.h"
#include "support/shipped_catalog.h"

// The shipped catalog against values checked by hand at their source.
using namespace reckon;
using Covers = Offering::Covers;

namespace {

double usd_per_hour(const Offering* offering, CapacityType capacity) {
  REQUIRE(offering);
  const auto& price = capacity == CapacityType::spot ? offering->spot : offering->on_demand;
  REQUIRE(price);
  return price->value.v * 3600;
}

double on_demand(std::string_view region, std::string_view zone, std::string_view item,
                 Covers covers) {
  constexpr auto kType = CapacityType::on_demand;
  return usd_per_hour(test::shipped_catalog().find_offering(Provider{"gcp"}, region, zone, item,
                                                            covers, kType),
                      kType) /
         test::shipped_catalog()
             .find_offering(Provider{"gcp"}, region, zone, item, covers, kType)
             ->count;
}

std::vector<std::string> zones_in(std::string_view item, std::string_view region) {
  for (const Location* location : test::shipped_catalog().locations_of(Provider{"gcp"}, item)) {
    if (location->region == region) return location->zones;
  }
  return {};
}

using Counts = std::vector<int>;
using Zones = std::vector<std::string>;

}  // namespace

TEST_CASE("the shipped catalog loads without a complaint and has a digest of 16 hex digits") {
  CHECK(test::shipped_catalog().digest.size() == 16);
  CHECK(test::shipped_catalog().digest.find_first_not_of("0123456789abcdef") == std::string::npos);
  CHECK(test::shipped_catalog().sources.front().id == "user");
}

TEST_CASE("every kind of accelerator that the articles name is there under its clouds' names") {
  // Kubernetes label, AI Platform enum, our name
  const std::array<std::array<const char*, 3>, 6> kinds{{
      {"nvidia-tesla-k80", "NVIDIA_TESLA_K80", "K80"},
      {"nvidia-tesla-p4", "NVIDIA_TESLA_P4", "P4"},
      {"nvidia-tesla-p100", "NVIDIA_TESLA_P100", "P100-PCIE-16"},
      {"nvidia-tesla-v100", "NVIDIA_TESLA_V100", "V100-SXM2-16"},
      {"nvidia-tesla-t4", "NVIDIA_TESLA_T4", "T4"},
      {"nvidia-tesla-a100", "NVIDIA_TESLA_A100", "A100-SXM4-40"},
  }};
  for (const auto& kind : kinds) {
    for (const char* name : kind) {
      INFO(name);
      REQUIRE(test::shipped_catalog().find_accelerator(name));
      CHECK(test::shipped_catalog().find_accelerator(name)->name == kind[2]);
    }
  }
  CHECK(test::shipped_catalog().find_accelerator("a100_sxm4_80")->name == "A100-SXM4-80");
  CHECK(test::shipped_catalog().find_accelerator("h100")->name == "H100-SXM5-80");
  CHECK(test::shipped_catalog().find_accelerator("TPU_V2")->name == "TPU-v2");
  CHECK(test::shipped_catalog().find_accelerator("tpu-v3")->name == "TPU-v3");
  CHECK_FALSE(test::shipped_catalog().find_accelerator("P1000"));
}

TEST_CASE("one K80 device is half a board and a TPU v2 chip is a quarter of a v2-8") {
  const Accelerator& k80 = *test::shipped_catalog().find_accelerator("K80");
  CHECK(k80.memory.value.v == Approx(12 * 1073741824.0));  // a board has 24 GB
  CHECK(k80.peak_for(Precision::fp32)->value.v == Approx(4.113e12));
  CHECK_FALSE(k80.peak_for(Precision::fp16));
  // 180 TFLOP/s and 64 GB for the 4 chips of a v2-8
  const Accelerator& tpu = *test::shipped_catalog().find_accelerator("TPU-v2");
  CHECK(4 * tpu.peak_for(Precision::bf16)->value.v == Approx(180e12));
  CHECK(4 * tpu.memory.value.v == Approx(64 * 1073741824.0));
}

TEST_CASE("a V100 multiplies at 125 TFLOP/s and has six NVLink 2 links of 25 GB/s") {
  const Accelerator& v100 = *test::shipped_catalog().find_accelerator("V100");
  CHECK(v100.peak_for(Precision::fp16)->value.v == Approx(125e12));
  CHECK(v100.peer_bandwidth->value.v == Approx(6 * 25e9));
  CHECK(v100.peer_link == "nvlink");
  CHECK(test::shipped_catalog().find_accelerator("P100")->peer_link == "pcie-host");
}

TEST_CASE("n1-standard-32 needs at least four V100 or K80 and two of the others on AI Platform") {
  const auto counts = [](std::string_view gpu) {
    return test::shipped_catalog().allowed_counts(Service{"ai_platform"}, "n1-standard-32", gpu);
  };
  CHECK(counts("V100") == Counts{4, 8});
  CHECK(counts("K80") == Counts{4, 8});
  CHECK(counts("P100") == Counts{2, 4});
  CHECK(counts("P4") == Counts{2, 4});
  CHECK(counts("T4") == Counts{2, 4});
}

TEST_CASE("one T4 may carry 32 vCPUs on GCE and GKE, not on AI Platform") {
  CHECK(test::shipped_catalog().allowed_counts(Service{"gce"}, "n1-standard-32", "T4") ==
        Counts{1, 2, 4});
  CHECK(test::shipped_catalog().allowed_counts(Service{"gke"}, "n1-standard-32", "T4") ==
        Counts{1, 2, 4});
  CHECK(test::shipped_catalog().allowed_counts(Service{"ai_platform"}, "n1-standard-32", "T4") ==
        Counts{2, 4});
}

TEST_CASE("four P100 carry up to 96 vCPUs on GCE and up to 64 on AI Platform") {
  CHECK(test::shipped_catalog().allowed_counts(Service{"gce"}, "n1-standard-96", "P100") ==
        Counts{4});
  CHECK(test::shipped_catalog()
            .allowed_counts(Service{"ai_platform"}, "n1-standard-96", "P100")
            .empty());
  CHECK(test::shipped_catalog().allowed_counts(Service{"ai_platform"}, "n1-highcpu-64", "P100") ==
        Counts{4});
}

TEST_CASE("a machine with built-in accelerators has exactly those") {
  CHECK(test::shipped_catalog().allowed_counts(Service{"gke"}, "a2-highgpu-8g", "A100") ==
        Counts{8});
  CHECK(test::shipped_catalog().allowed_counts(Service{"gke"}, "a2-highgpu-8g", "V100").empty());
  CHECK(test::shipped_catalog().allowed_counts(Service{"eks"}, "p3.8xlarge", "V100") == Counts{4});
  CHECK(test::shipped_catalog()
            .allowed_counts(Service{"ai_platform"}, "a3-highgpu-8g", "H100")
            .empty());
  CHECK(test::shipped_catalog().allowed_counts(Service{"gke"}, "n1-standard-16", "A100").empty());
}

TEST_CASE(
    "the AI Platform example of 4 T4 on n1-highcpu-16 with servers on n1-highmem-8 is valid") {
  CHECK(test::shipped_catalog().allowed_counts(Service{"ai_platform"}, "n1-highcpu-16",
                                               "NVIDIA_TESLA_T4") == Counts{1, 2, 4});
  const Machine* server = test::shipped_catalog().find_machine(Provider{"gcp"}, "n1-highmem-8");
  REQUIRE(server);
  CHECK(server->vcpus == 8);
  CHECK(server->memory.value.v == Approx(52 * 1073741824.0));
}

TEST_CASE("in us-central1 P100 stand in zones c and f, K80 in a and c, and half pods in a") {
  CHECK(zones_in("P100", "us-central1") == Zones{"us-central1-c", "us-central1-f"});
  CHECK(zones_in("K80", "us-central1") == Zones{"us-central1-a", "us-central1-c"});
  CHECK(zones_in("P100", "asia-south1").empty());
  CHECK(zones_in("v2-256", "us-central1") == Zones{"us-central1-a"});
  CHECK_FALSE(
      test::shipped_catalog().locations_of(Provider{"gcp"}, "TPU-v3").empty());  // by its slices
}

TEST_CASE(
    "an a2-highgpu-1g costs 0.73948 for the machine and 2.93391 for the GPU, together 3.67339 "
    "USD/h") {
  const double machine =
      on_demand("us-central1", "us-central1-a", "a2-highgpu-1g", Covers::machine);
  const double gpu =
      on_demand("us-central1", "us-central1-a", "nvidia-tesla-a100", Covers::accelerator);
  CHECK(machine == Approx(0.73948));
  CHECK(machine + gpu == Approx(3.67339));
  // The cluster autoscaler's table has the sum: 3.673385.
  CHECK(on_demand("us-central1", "", "a2-highgpu-1g", Covers::machine_with_accelerators) ==
        Approx(3.673385));
}

TEST_CASE("known prices of GPUs, slices and disks in us-central1") {
  CHECK(on_demand("us-central1", "us-central1-c", "P100", Covers::accelerator) == Approx(1.46));
  CHECK(on_demand("us-central1", "us-central1-c", "V100", Covers::accelerator) == Approx(2.48));
  CHECK(on_demand("us-central1", "us-central1-a", "n1-standard-16", Covers::machine) ==
        Approx(0.76));
  CHECK(on_demand("us-central1", "us-central1-c", "v2-8", Covers::slice) == Approx(4.5));
  CHECK(on_demand("us-central1", "us-central1-a", "v2-256", Covers::slice) == Approx(192.0));
  // 0.04 USD a GB and month of 730 h
  const Offering* disk = test::shipped_catalog().find_offering(
      Provider{"gcp"}, "us-central1", "", "pd-standard", Covers::storage, CapacityType::on_demand);
  REQUIRE(disk);
  CHECK(disk->on_demand->value.v * 730 * 3600 == Approx(0.04));
}

TEST_CASE("a suspect on-demand price is passed over, its spot price is not") {
  // 4.20 USD/h for an H100 in us-central1 where 9.80 is right
  const auto find = [](CapacityType type) {
    return test::shipped_catalog().find_offering(Provider{"gcp"}, "us-central1", "us-central1-a",
                                                 "H100", Covers::accelerator, type);
  };
  CHECK_FALSE(find(CapacityType::on_demand));
  CHECK(usd_per_hour(find(CapacityType::spot), CapacityType::spot) == Approx(2.9926));
  CHECK(on_demand("us-east4", "us-east4-a", "H100", Covers::accelerator) == Approx(9.79655));
}

TEST_CASE("the newest price wins, and zones restrict") {
  // V100 spot was 0.74 in 2022 and is 1.0885 in the newer table.
  const Offering* v100 =
      test::shipped_catalog().find_offering(Provider{"gcp"}, "us-central1", "us-central1-a", "V100",
                                            Covers::accelerator, CapacityType::spot);
  CHECK(usd_per_hour(v100, CapacityType::spot) == Approx(1.0885));
  CHECK(v100->date == "2025-07-01");
  CHECK_FALSE(test::shipped_catalog().find_offering(Provider{"gcp"}, "us-central1", "us-central1-c",
                                                    "v2-256", Covers::slice,
                                                    CapacityType::on_demand));
  CHECK_FALSE(test::shipped_catalog().find_offering(Provider{"gcp"}, "us-central1", "", "V100",
                                                    Covers::accelerator, CapacityType::reserved));
}

TEST_CASE(
    "the half pod of TPU v2 is v2-256: 128 chips, 8 by 16, 32 hosts, only whole pods close the "
    "torus") {
  const TpuSlice* half = test::shipped_catalog().find_slice("V2-256");
  REQUIRE(half);
  CHECK(half->chips == 128);
  CHECK(half->torus == std::vector<int>{8, 16});
  CHECK(half->hosts == 32);
  CHECK_FALSE(half->wraps);
  CHECK(test::shipped_catalog().find_slice("v2-512")->wraps);
  CHECK(test::shipped_catalog().find_slice("v2-8")->chips == 4);
  CHECK(test::shipped_catalog().find_slice("v5litepod-8")->chips == 8);  // counts chips, not cores
  for (const TpuSlice& slice : test::shipped_catalog().slices) {
    INFO(slice.name);
    const Machine* host = test::shipped_catalog().find_machine(Provider{"gcp"}, slice.machine);
    REQUIRE(host);
    CHECK(slice.chips <= host->accelerator_count * slice.hosts);
  }
}

TEST_CASE("ImageNet has 1,281,167 images of about 110 kB to train on and 50,000 to validate") {
  const Dataset* imagenet = test::shipped_catalog().find_dataset("ImageNet");
  REQUIRE(imagenet);
  CHECK(imagenet->samples.value.v == 1281167);
  CHECK(imagenet->validation_samples.value.v == 50000);
  CHECK(imagenet->bytes_per_sample.value.v == Approx(110e3));
  CHECK(imagenet->decode_cpu_seconds.assumed);
}

TEST_CASE("every operational number that code asks for is there") {
  const OperationalDefaults& operations = test::shipped_catalog().operations;
  for (const std::string_view key : keys::kAll) {
    INFO(key);
    CHECK(operations.find(key));
  }
  std::vector<std::string> made;
  for (const ProviderRules& rules : test::shipped_catalog().providers) {
    const Provider& provider = rules.id;
    made.push_back(keys::provisioning(provider, keys::NodeKind::cpu));
    made.push_back(keys::provisioning(provider, keys::NodeKind::gpu));
    made.push_back(keys::spot_notice(provider));
    made.push_back(keys::maintenance_every(provider));
    made.push_back(keys::maintenance_notice(provider));
    made.push_back(keys::billing_granularity(provider));
    made.push_back(keys::billing_minimum(provider));
    made.push_back(keys::free_if_reclaimed_within(provider));
  }
  made.push_back(keys::provisioning(Provider{"gcp"}, keys::NodeKind::tpu));
  for (const ServiceRules& service : test::shipped_catalog().services)
    made.push_back(keys::management_fee(service.id));
  for (const std::string& key : made) {
    INFO(key);
    CHECK(operations.find(key));
  }
  CHECK(operations.at(keys::kScaleDownUnneededTime).value ==
        600);                                             // cluster-autoscaler FAQ: 10 minutes
  CHECK(operations.at(keys::kJobRetryCap).value == 360);  // capped at six minutes
  CHECK(operations.at(keys::kMtbfPerAccelerator).value == Approx(53000.0 * 3600));
}

TEST_CASE("every accelerator has an efficiency for each precision it has a peak for") {
  for (const Accelerator& accelerator : test::shipped_catalog().accelerators) {
    for (const Precision precision : kPrecisions) {
      if (!accelerator.peak_for(precision)) continue;
      INFO(accelerator.name << " " << to_text(precision));
      const Efficiency* row = test::shipped_catalog().find_efficiency(accelerator, precision, "");
      REQUIRE(row);
      CHECK(row->step_spread.low <= 1);
      CHECK(row->step_spread.high >= 1);
    }
  }
}

TEST_CASE("every source has a reference, and a date unless it is general knowledge") {
  std::set<std::string> ids;
  int without_date = 0;
  for (std::size_t i = 1; i < test::shipped_catalog().sources.size(); ++i) {
    const Source& source = test::shipped_catalog().sources[i];
    INFO(source.id);
    CHECK(ids.insert(source.id).second);
    CHECK_FALSE(source.reference.empty());
    if (source.retrieved.empty()) {
      ++without_date;
      CHECK(source.id == "general-knowledge");
    } else {
      CHECK(source.retrieved.size() == 10);
    }
  }
  CHECK(without_date == 1);
}

TEST_CASE("link efficiencies reproduce measured all-reduces of 1 GiB on eight GPUs") {
  // t = L + w + c sqrt(L w), L = call + 14 hops, w = 2 * 7/8 * size / (efficiency * bandwidth),
  // against vTrain's tables: 8.193 ms on A100 (300 GB/s) and 13.969 ms on V100 (150 GB/s), where
  // eight GPUs do better than the class's middle: the range's end.
  const auto milliseconds = [](const LinkClass& link, BytesPerSecond bandwidth, double efficiency) {
    const double wait = link.call->value.count() + 14 * link.latency.value.count();
    const double bytes = 2 * 7.0 / 8 * 1073741824 / (efficiency * bandwidth.v);
    return (wait + bytes + link.pieces->value * std::sqrt(wait * bytes)) * 1e3;
  };
  const LinkClass& a100 = *test::shipped_catalog().find_link("nvswitch");
  CHECK(milliseconds(a100, 300.0_GBps, a100.efficiency.value) == Approx(8.193).epsilon(0.03));
  const LinkClass& v100 = *test::shipped_catalog().find_link("nvlink");
  CHECK(milliseconds(v100, 150.0_GBps, v100.efficiency.high) == Approx(13.969).epsilon(0.03));
  CHECK(milliseconds(v100, 150.0_GBps, v100.efficiency.value) > 13.969);
}

TEST_CASE(
    "every link that machines and accelerators name exists, and hosts of GPUs have vCPUs to feed "
    "them") {
  for (const Machine& machine : test::shipped_catalog().machines) {
    INFO(machine.name);
    CHECK(machine.vcpus > 0);
    CHECK(test::shipped_catalog().find_link(machine.network_link));
    // A machine that names no fabric has the links of its accelerators (below).
    if (!machine.peer_fabric.empty()) CHECK(test::shipped_catalog().find_link(machine.peer_fabric));
  }
  for (const Accelerator& accelerator : test::shipped_catalog().accelerators) {
    CHECK(test::shipped_catalog().find_link(accelerator.peer_link));
  }
  for (const LinkClass& link : test::shipped_catalog().links) CHECK(link.efficiency.low > 0);
}
