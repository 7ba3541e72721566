#include <catch2/catch.hpp>

#include "support/scenario_text.h"

// What a real run needs and the forecast does not: the optimizer's settings, the samples' files.
using namespace reckon;

namespace {

std::string training_scenario(const std::string& workload) {
  return "workload:\n" + workload +
         "  strategy: {kind: single}\n"
         "cluster:\n  provider: gcp\n  region: us-central1\n"
         "  pools: [{name: p, machine: n1-standard-16, accelerator: {type: P100-PCIE-16, count: "
         "1}, "
         "nodes: 1}]\n";
}
const std::string kImages =
    "  model: resnet50_v1_5\n  dataset: imagenet\n  train: {steps: 1000}\n"
    "  batch_per_accelerator: 64\n";

PlannedWorkload job_of(const std::string& workload) {
  const auto plan = test::plan_of(training_scenario(workload));
  if (!plan) FAIL(format(plan.error()));
  return plan->jobs[0];
}
std::string training_errors(const std::string& workload) {
  return test::errors_of(training_scenario(workload));
}

}  // namespace

TEST_CASE("an optimizer is a word, or a map that says how a real run trains") {
  CHECK(job_of(kImages + "  optimizer: adamw\n").optimizer == Optimizer::adamw);
  const PlannedWorkload job =
      job_of(kImages +
             "  optimizer: {kind: adamw, learning_rate: 0.002, beta2: 95%, weight_decay: 0.1, "
             "clip_norm: 1,"
             " schedule: step, warmup_steps: 10, decay_every: 300, decay_factor: 0.5}\n");
  CHECK(job.optimizer == Optimizer::adamw);
  const PlannedOptimizer& o = job.optimizer_settings;
  CHECK(o.learning_rate == 0.002);
  CHECK(o.beta1 == 0.9);
  CHECK(o.beta2 == Approx(0.95));
  CHECK(o.weight_decay == 0.1);
  CHECK(o.clip_norm == 1);
  CHECK(o.schedule == LearningRateSchedule::step);
  CHECK(o.warmup_steps == 10);
  CHECK(o.decay_every == 300);
  CHECK(o.decay_factor == 0.5);
}

TEST_CASE("what the optimizer is not told follows the model's family") {
  const PlannedOptimizer images = job_of(kImages).optimizer_settings;
  CHECK(images.learning_rate == Approx(0.025));  // 0.1 * 64 / 256
  CHECK(images.momentum == 0.9);
  CHECK(images.weight_decay == 1e-4);
  CHECK(images.warmup_steps == 50);  // of 1000
  const PlannedWorkload text = job_of(
      "  model: gpt2_small\n  train: {steps: 1000}\n  dataset: {samples: 1000, bytes_per_sample: "
      "2kB}\n  batch_per_accelerator: 4\n");
  CHECK(text.optimizer == Optimizer::adamw);
  CHECK(text.optimizer_settings.learning_rate == 6e-4);
  CHECK(text.optimizer_settings.beta2 == 0.95);
  CHECK(text.optimizer_settings.clip_norm == 1);
  CHECK(text.optimizer_settings.warmup_steps == 100);
  CHECK(text.optimizer_settings.final_fraction == 0.1);
}

TEST_CASE("a data set of one's own may say what decoding a sample takes") {
  const std::string job =
      "  model: resnet50_v1_5\n  train: {epochs: 3}\n  batch_per_accelerator: 64\n";
  const PlannedWorkload own =
      job_of(job + "  dataset: {samples: 1000, bytes_per_sample: 110kB, decode: 8ms}\n");
  CHECK(own.dataset.decode_cpu_seconds.value == 0.008);
  CHECK(own.epochs == 3);
  CHECK(own.total_samples == 3000);
  const PlannedWorkload silent =
      job_of(job + "  dataset: {samples: 1000, bytes_per_sample: 110kB}\n");
  CHECK(silent.dataset.decode_cpu_seconds.value == 0);
  CHECK(job_of(kImages).epochs == 0);
  CHECK_THAT(
      training_errors(job + "  dataset: {samples: 1000, bytes_per_sample: 110kB, decod: 8ms}\n"),
      Catch::Matchers::Contains("did you mean 'decode'?"));
  CHECK_THAT(
      training_errors(job + "  dataset: {samples: 1000, bytes_per_sample: 110kB, decode: 8}\n"),
      Catch::Matchers::Contains("'8' has no unit"));
}

TEST_CASE("encoded images say how they are cut, and data in a store where it is") {
  const DataSpec data =
      job_of(kImages +
             "  data: {format: webdataset, path: s3://bucket/train-, endpoint: "
             "http://127.0.0.1:9000, crop: center, resize: 256, flip: true, damaged: skip}\n")
          .data;
  CHECK(data.format == DataFormat::webdataset);
  CHECK(data.endpoint == "http://127.0.0.1:9000");
  CHECK(data.crop == ImageCrop::center);
  CHECK(data.resize == 256);
  CHECK(data.flip == true);
  CHECK(data.damaged == DamagedSample::skip);
  const auto errors = [](const std::string& keys) {
    return training_errors(kImages + "  data: {" + keys + "}\n");
  };
  const auto contains = [](const std::string& text) { return Catch::Matchers::Contains(text); };
  CHECK_THAT(errors("format: tfrecords, path: x"), contains("did you mean 'tfrecord'?"));
  CHECK_THAT(errors("format: numpy, path: x, crop: center"),
             contains("'crop' goes with encoded images, not with format numpy") &&
                 contains("formats of encoded images: image_folder, webdataset, tfrecord"));
  CHECK_THAT(errors("format: tfrecord, path: x, resize: 256"),
             contains("'resize' goes with crop: center"));
  CHECK_THAT(errors("format: tfrecord, path: x, crop: centre"), contains("did you mean 'center'?"));
  CHECK_THAT(errors("format: cifar10, path: s3://bucket/x"),
             contains("format cifar10 is not read from a store") &&
                 contains("from a store: tokens, image_folder, webdataset, tfrecord, megatron, "
                          "numpy"));
  CHECK_THAT(errors("format: numpy, path: 's3:///x'"), contains("the path names no bucket"));
  CHECK_THAT(errors("format: numpy, path: x, endpoint: http://h"),
             contains("an endpoint goes with a path in a store"));
  CHECK_THAT(errors("format: numpy, path: s3://b/x, endpoint: h:9000"),
             contains("the endpoint is no http:// or https:// address"));
}

TEST_CASE("data names a format and a path, or is synthetic") {
  CHECK(job_of(kImages).data.format == DataFormat::synthetic);
  const DataSpec data = job_of(kImages + "  data: {format: cifar10, path: cifar}\n").data;
  CHECK(data.format == DataFormat::cifar10);
  CHECK(data.path == "cifar");
  const auto contains = [](const std::string& text) { return Catch::Matchers::Contains(text); };
  CHECK_THAT(training_errors(kImages + "  data: {format: cifar10}\n"),
             contains("workload.data needs 'path'"));
  CHECK_THAT(training_errors(kImages + "  data: {format: synthetic, path: x}\n"),
             contains("synthetic data has no path"));
  CHECK_THAT(training_errors(kImages + "  data: {format: cifar, path: x}\n"),
             contains("did you mean 'cifar10'?"));
  CHECK_THAT(training_errors(kImages + "  optimizer: {learning_rat: 1}\n"),
             contains("did you mean 'learning_rate'?"));
  CHECK_THAT(training_errors(kImages + "  optimizer: {momentum: 1}\n"),
             contains("optimizer.momentum"));
}
