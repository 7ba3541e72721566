#include "sim/catalog/catalog_lookup.h"

#include <array>
#include <catch2/catch.hpp>

#include "support/shipped_catalog.h"

// Sizes and prices that no row of the shipped catalog says, against numbers worked out by hand.
using namespace reckon;
using Covers = Offering::Covers;

namespace {

PriceQuestion in(Provider provider, std::string region, std::string zone = "") {
  return {provider, std::move(region), std::move(zone), CapacityType::on_demand, false};
}

double hourly(const std::optional<FoundPrice>& price) {
  REQUIRE(price);
  return price->rate.value.v * 3600;
}

std::string refusal(std::string_view name) {
  const auto found = resolve_machine(test::shipped_catalog(), Provider{"gcp"}, name);
  REQUIRE_FALSE(found.has_value());
  return found.error();
}

using Counts = std::vector<int>;

}  // namespace

TEST_CASE("a custom N1 machine has the size that its name says and the network of its class") {
  const auto found = resolve_machine(test::shipped_catalog(), Provider{"gcp"}, "custom-24-98304");
  REQUIRE(found.has_value());
  CHECK(found->machine.vcpus == 24);
  CHECK(found->machine.memory.value.v == 96 * 1073741824.0);  // 98304 MiB
  // like n1-standard-16, the largest N1 with no more vCPUs: 32 Gbps
  CHECK(found->machine.network.value.v == Approx(32e9 / 8));
  const auto long_name =
      resolve_machine(test::shipped_catalog(), Provider{"gcp"}, "n1-custom-24-98304");
  REQUIRE(long_name.has_value());
  CHECK(long_name->machine.name == found->machine.name);
}

TEST_CASE("custom sizes outside the rules are refused with the rule") {
  CHECK(refusal("custom-3-12288") ==
        "3 vCPUs: a machine of n1-custom has 1 or an even number up to 96");
  CHECK(refusal("custom-98-98304") ==
        "98 vCPUs: a machine of n1-custom has 1 or an even number up to 96");
  // 0.9 GiB x 4 = 3686.4 MiB, up to a step of 256: 3840; 6.5 GiB x 4 = 26624 MiB
  CHECK(refusal("custom-4-3584") == "3584 MiB for 4 vCPUs: n1-custom takes 3840 to 26624 MiB");
  CHECK(refusal("custom-4-26880") == "26880 MiB for 4 vCPUs: n1-custom takes 3840 to 26624 MiB");
  CHECK(refusal("custom-4-15000") ==
        "15000 MiB is not a multiple of 256 MiB; near it are 14848 and 15104");
  CHECK(refusal("n1-standard-17").empty());
  CHECK(refusal("custom-4").empty());
  CHECK(resolve_machine(test::shipped_catalog(), Provider{"gcp"}, "custom-1-1024").has_value());
  CHECK(resolve_machine(test::shipped_catalog(), Provider{"gcp"}, "custom-4-26624").has_value());
  CHECK_FALSE(
      resolve_machine(test::shipped_catalog(), Provider{"aws"}, "custom-4-16384").has_value());
}

TEST_CASE("a custom machine costs its vCPUs and its memory") {
  const auto price = find_price(test::shipped_catalog(), in(Provider{"gcp"}, "us-central1"),
                                "custom-24-98304", Covers::machine);
  // 24 x 0.033174 + 96 x 0.004446 = 0.796176 + 0.426816
  CHECK(hourly(price) == Approx(1.222992).epsilon(1e-9));
  CHECK(price->note == "24 vCPUs and 96 GiB of n1-custom");
  CHECK(price->date == "2024-01-01");
  PriceQuestion spot = in(Provider{"gcp"}, "us-central1");
  spot.capacity = CapacityType::spot;
  // 24 x 0.00698 + 96 x 0.004446 x 0.00698 / 0.033174
  CHECK(hourly(find_price(test::shipped_catalog(), spot, "custom-24-98304", Covers::machine)) ==
        Approx(0.16752 + 0.0898038).epsilon(1e-4));
}

TEST_CASE("a missing size's price is a whole multiple of the nearest smaller size and says so") {
  // Standard_NC12s_v3 is 12 vCPUs, 224 GiB, 2 V100: twice Standard_NC6s_v3, which costs 3.06 in
  // eastus.
  const auto price = find_price(test::shipped_catalog(), in(Provider{"azure"}, "eastus"),
                                "Standard_NC12s_v3", Covers::machine_with_accelerators);
  const auto small = find_price(test::shipped_catalog(), in(Provider{"azure"}, "eastus"),
                                "Standard_NC6s_v3", Covers::machine_with_accelerators);
  CHECK(hourly(price) == Approx(2 * hourly(small)));
  CHECK(hourly(small) == Approx(3.06));
  CHECK(price->note == "no price of Standard_NC12s_v3 is known: 2 x Standard_NC6s_v3");
  CHECK(small->note.empty());
}

TEST_CASE("sizes that are no multiple of each other price nothing") {
  // NC16as_T4_v3 has four times the vCPUs of NC4as_T4_v3 but the same one T4.
  CHECK_FALSE(find_price(test::shipped_catalog(), in(Provider{"azure"}, "eastus"),
                         "Standard_NC16as_T4_v3", Covers::machine_with_accelerators));
  CHECK_FALSE(find_price(test::shipped_catalog(), in(Provider{"gcp"}, "europe-west4"),
                         "n1-standard-16", Covers::machine));
}

TEST_CASE("a suspect price is taken only when it is asked for") {
  PriceQuestion question = in(Provider{"gcp"}, "asia-northeast3");
  CHECK_FALSE(find_price(test::shipped_catalog(), question, "A100-SXM4-40", Covers::accelerator));
  question.suspect = true;
  const auto price =
      find_price(test::shipped_catalog(), question, "A100-SXM4-40", Covers::accelerator);
  CHECK(hourly(price) == Approx(1.70586));
  CHECK(price->note == "the price of A100-SXM4-40 looks wrong and was asked for");
}

TEST_CASE("custom machines carry what the limits of their size allow") {
  const auto counts = [](std::string_view machine, std::string_view gpu,
                         std::string_view zone = "") {
    return test::shipped_catalog().allowed_counts(Service{"gce"}, machine, gpu, zone);
  };
  CHECK(counts("custom-24-98304", "T4") == Counts{1, 2, 4});  // one T4: up to 48 vCPUs
  CHECK(counts("custom-50-98304", "T4") == Counts{4});
  CHECK(counts("custom-12-79872", "V100") == Counts{1, 2, 4, 8});  // 78 GiB, the limit of one V100
  CHECK(counts("custom-14-79872", "V100") == Counts{2, 4, 8});
  CHECK(counts("custom-24-98304", "A100").empty());
  CHECK(test::shipped_catalog()
            .allowed_counts(Service{"ai_platform"}, "custom-24-98304", "T4")
            .empty());
}

TEST_CASE("four P100 take up to 96 vCPUs on GCE, but 64 vCPUs and 208 GB in three zones") {
  const auto counts = [](std::string_view machine, std::string_view zone) {
    return test::shipped_catalog().allowed_counts(Service{"gce"}, machine, "P100", zone);
  };
  for (const char* zone : {"us-east1-c", "europe-west1-d", "europe-west1-b"}) {
    CHECK(counts("n1-standard-96", zone).empty());          // 96 vCPUs
    CHECK(counts("n1-standard-64", zone).empty());          // 240 GB
    CHECK(counts("n1-highcpu-64", zone) == Counts{4});      // 57.6 GB
    CHECK(counts("n1-standard-32", zone) == Counts{2, 4});  // not touched
    CHECK(counts("custom-96-98304", zone).empty());
  }
  CHECK(counts("n1-standard-96", "us-central1-c") == Counts{4});
  CHECK(counts("n1-standard-96", "") == Counts{4});
  CHECK(counts("custom-96-98304", "us-central1-c") == Counts{4});
}

TEST_CASE("the attachment table of GCE is what the limits say, machine by machine") {
  int compared = 0;
  for (const AttachmentRule& rule : test::shipped_catalog().attachments) {
    if (rule.service != Service{"gce"} || !rule.machine.starts_with("n1-")) continue;
    const Machine* machine = test::shipped_catalog().find_machine(Provider{"gcp"}, rule.machine);
    REQUIRE(machine);
    Counts limited;
    for (const AttachmentLimit& limit : test::shipped_catalog().limits) {
      if (limit.service == Service{"gce"} && limit.accelerator == rule.accelerator &&
          limit.zones.empty() && machine->vcpus <= limit.vcpus &&
          machine->memory.value.v <= limit.memory.value.v)
        limited.push_back(limit.count);
    }
    INFO(rule.machine << " " << rule.accelerator);
    CHECK(rule.counts == limited);
    ++compared;
  }
  CHECK(compared >= 80);
}

TEST_CASE("scale tiers are the clusters that the documentation lists") {
  const ScaleTier* standard =
      test::shipped_catalog().find_tier(Service{"ai_platform"}, "STANDARD_1");
  REQUIRE(standard);
  REQUIRE(standard->parts.size() == 3);  // by role: chief, parameter_server, worker
  CHECK(standard->parts[1].machine == "n1-standard-4");
  CHECK(standard->parts[1].count == 3);
  CHECK(standard->parts[2].machine == "n1-highcpu-8");
  CHECK(standard->parts[2].count == 4);
  const ScaleTier* premium = test::shipped_catalog().find_tier(Service{"ai_platform"}, "premium-1");
  REQUIRE(premium);
  CHECK(premium->parts[1].count + premium->parts[2].count == 30);  // 11 servers, 19 workers
  CHECK(test::shipped_catalog()
            .find_tier(Service{"ai_platform"}, "BASIC_GPU")
            ->parts[0]
            .accelerator == "K80");
  CHECK(test::shipped_catalog().find_tier(Service{"ai_platform"}, "BASIC_TPU")->parts[1].slice ==
        "v2-8");
  CHECK(test::shipped_catalog().find_tier(Service{"ai_platform"}, "CUSTOM")->parts.empty());
  CHECK(test::shipped_catalog().find_tier(Service{"gke"}, "CUSTOM") == nullptr);
}

TEST_CASE("AI Platform's legacy types are its own, all others are everywhere") {
  const Machine* legacy =
      test::shipped_catalog().find_machine(Provider{"gcp"}, "complex_model_m_gpu");
  REQUIRE(legacy);
  CHECK(legacy->offered_under(Service{"ai_platform"}));
  CHECK_FALSE(legacy->offered_under(Service{"gke"}));
  const Machine* plain = test::shipped_catalog().find_machine(Provider{"gcp"}, "n1-standard-16");
  REQUIRE(plain);
  CHECK(plain->offered_under(Service{"ai_platform"}));
  CHECK(plain->offered_under(Service{"gke"}));
}

TEST_CASE("names of labels, taints and resources are there by service") {
  const ClusterNames* gke = test::shipped_catalog().find_cluster_names("gke");
  REQUIRE(gke);
  CHECK(gke->find("labels.accelerator")->text == "cloud.google.com/gke-accelerator");
  CHECK(gke->find("taints.gpu")->text == "nvidia.com/gpu=present:NoSchedule");
  CHECK(gke->find("accelerators.P100-PCIE-16")->text == "nvidia-tesla-p100");
  CHECK(gke->find("labels.nothing") == nullptr);
  const ClusterNames* all = test::shipped_catalog().find_cluster_names("kubernetes");
  REQUIRE(all);
  CHECK(all->find("resources.gpu")->text == "nvidia.com/gpu");
  CHECK(all->find("api_versions.jobset")->text == "jobset.x-k8s.io/v1alpha2");
  const auto& source =
      test::shipped_catalog().sources[std::size_t(all->find("api_versions.jobset")->source)];
  CHECK(source.id == "jobset");
  CHECK(test::shipped_catalog().find_cluster_names("aks")->find("taints.spot")->text ==
        "kubernetes.azure.com/scalesetpriority=spot:NoSchedule");
  // Where an accelerator has a value on GKE, the same text finds the accelerator.
  for (const auto& [key, name] : gke->names) {
    if (!key.starts_with("accelerators.") || key.starts_with("accelerators.TPU")) continue;
    INFO(name.text);
    REQUIRE(test::shipped_catalog().find_accelerator(name.text));
    CHECK("accelerators." + test::shipped_catalog().find_accelerator(name.text)->name == key);
  }
}

TEST_CASE("a stack without a row changes the row for any stack, a family stands for its members") {
  Catalog catalog;
  catalog.stacks.push_back({"eager", Fact<double>{0.5}, Fact<Seconds>{Seconds{20e-6}}});
  catalog.stacks.push_back({"*-tuned", Fact<double>{2.0}, Fact<Seconds>{Seconds{5e-6}}});
  REQUIRE(catalog.find_stack("eager"));
  CHECK(catalog.find_stack("eager")->name == "eager");
  for (const char* name : {"mx-tuned", "very-well-tuned", "tuned"}) {
    REQUIRE(catalog.find_stack(name));
    CHECK(catalog.find_stack(name)->name == "*-tuned");
  }
  CHECK(catalog.find_stack("lazy") == nullptr);
  CHECK(catalog.find_stack("") == nullptr);
  Efficiency any;
  any.convolution = any.matmul = any.attention = any.memory =
      Fact<double>{0.4, 0.2, 0.6, SourceId::user};
  any.launch = Fact<Seconds>{Seconds{4e-6}};
  const Efficiency slow = with_stack(any, *catalog.find_stack("eager"));
  CHECK(slow.stack == "eager");
  CHECK(slow.memory.value == Approx(0.2));
  CHECK(slow.matmul.low == Approx(0.1));
  CHECK(slow.matmul.high == Approx(0.3));
  CHECK(slow.launch.value.count() == Approx(8e-6));
  CHECK(slow.host.value.count() == Approx(20e-6));
}

TEST_CASE("a stack without a row of its own has its class's, else that of any stack") {
  Catalog catalog;
  catalog.stack_classes = {{"megatron*", "fused"}, {"solo", "alone"}};
  CHECK(catalog.class_of_stack("Megatron-LM") == "fused");
  CHECK(catalog.class_of_stack("megatron") == "fused");
  CHECK(catalog.class_of_stack("fused") == "fused");
  CHECK(catalog.class_of_stack("solo") == "alone");
  CHECK(catalog.class_of_stack("solo-2") == "");
  CHECK(catalog.class_of_stack("mega") == "");
  CHECK(catalog.class_of_stack("") == "");
  Accelerator card;
  card.name = "card";
  for (const char* stack : {"", "fused", "megatron-own"}) {
    Efficiency e;
    e.accelerator = "card";
    e.stack = stack;
    catalog.efficiencies.push_back(e);
  }
  const auto found = [&](std::string_view stack) {
    return catalog.find_efficiency(card, Precision::fp32, stack)->stack;
  };
  CHECK(found("megatron-own") == "megatron-own");
  CHECK(found("megatron-lm") == "fused");
  CHECK(found("fused") == "fused");
  CHECK(found("solo") == "");
  CHECK(found("tf1") == "");
}
