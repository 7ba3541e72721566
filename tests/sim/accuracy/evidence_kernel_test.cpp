#include "sim/accuracy/evidence/kernel.h"

#include <catch2/catch.hpp>

using namespace reckon;

namespace {

EvidenceFeatures run_of(std::string_view network, std::string_view stack) {
  EvidenceFeatures f;
  f.accelerator = word_id("A100-SXM4-80");
  f.architecture = word_id("Ampere");
  f.year = 2020;
  f.precision = Precision::fp16;
  f.network = word_id(network);
  f.domain = domain_of(network, SampleUnit::image);
  f.stack = word_id(stack);
  f.stack_family = word_id(stack_family_of(stack));
  f.source = f.publisher = word_id("someone");
  f.link = word_id("nvlink");
  f.accelerators = 8;
  return f;
}

}  // namespace

TEST_CASE("a run is like itself, and less like what has less in common with it") {
  const EvidenceKernel kernel;
  const EvidenceFeatures run = run_of("resnet50_v1_5", "mxnet-ngc");
  const double whole = device_covariance(run, run, kernel);
  CHECK(whole == Approx(device_variance(run, kernel)));
  const auto after = [&](auto change) {
    EvidenceFeatures other = run;
    change(other);
    return device_covariance(run, other, kernel);
  };
  CHECK(after([](auto& f) { f.source = f.publisher = word_id("others"); }) < whole);
  CHECK(after([](auto& f) { f.network = word_id("vgg16"); }) < whole);
  CHECK(after([](auto& f) { f.log_batch = 3; }) < whole);
  CHECK(after([](auto& f) { f.precision = Precision::fp32; }) < whole);
  const double sister = after([](auto& f) { f.accelerator = word_id("A100-SXM4-40"); });
  const double stranger =
      after([](auto& f) { f.accelerator = f.architecture = word_id("MI300X"); });
  CHECK(sister < whole);
  CHECK(stranger < sister);
}

TEST_CASE("what is not said is like nothing, but varies as much as what is said") {
  const EvidenceKernel kernel;
  const EvidenceFeatures run = run_of("resnet50_v1_5", "mxnet-ngc");
  EvidenceFeatures unsaid = run;
  unsaid.stack = unsaid.stack_family = unsaid.link = 0;
  CHECK(device_covariance(unsaid, run, kernel) < device_covariance(run, run, kernel));
  CHECK(link_covariance(unsaid, run, kernel) < link_covariance(run, run, kernel));
  CHECK(device_variance(unsaid, kernel) == device_variance(run, kernel));
  CHECK(link_variance(unsaid, kernel) == link_variance(run, kernel));
}

TEST_CASE("language models and all others say nothing of each other's devices") {
  const EvidenceKernel kernel;
  EvidenceFeatures language = run_of("llama3_8b", "nemo");
  language.domain = Domain::language;
  CHECK(device_covariance(language, run_of("resnet50", "nemo"), kernel) == 0);
}

TEST_CASE("one accelerator has no links, and those inside a node tell nothing of those between") {
  const EvidenceKernel kernel;
  const EvidenceFeatures run = run_of("resnet50", "mxnet");
  EvidenceFeatures one = run, many = run;
  one.accelerators = 1;
  many.many_nodes = true;
  CHECK(link_variance(one, kernel) == 0);
  CHECK(link_covariance(one, run, kernel) == 0);
  CHECK(link_covariance(many, run, kernel) == 0);
  CHECK(link_covariance(run, run, kernel) == Approx(link_variance(run, kernel)));
}

TEST_CASE("a kernel is read as it was written") {
  EvidenceKernel kernel;
  kernel.accelerator = 0.125;
  kernel.domain_scale[2] = 1.5;
  const auto read = read_evidence_kernel("kernel.csv", evidence_kernel_csv(kernel));
  REQUIRE(read);
  CHECK(read->accelerator == 0.125);
  CHECK(read->domain_scale[2] == 1.5);
}

TEST_CASE("what is wrong in a kernel's file is told with its line") {
  std::string text = evidence_kernel_csv({});
  text.replace(text.find("network,"), 8, "netwerk,");
  text.replace(text.find("noise,0.03"), 10, "noise,-0.3");
  const auto read = read_evidence_kernel("kernel.csv", text);
  REQUIRE_FALSE(read);
  const std::string told = format(read.error());
  CHECK_THAT(told, Catch::Contains("'netwerk' is no number of the kernel"));
  CHECK_THAT(told, Catch::Contains("no row for network"));
  CHECK_THAT(told, Catch::Contains("noise: not a number from 0.005 to 1"));
}
