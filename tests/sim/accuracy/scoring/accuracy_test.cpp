#include "sim/accuracy/scoring/accuracy.h"
#include "sim/accuracy/scoring/fit/fit.h"

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>

#include "sim/base/mapped_file.h"
#include "support/shipped_catalog.h"
#include "support/skip.h"

using namespace reckon;

namespace {

ScoredRun accuracy_run(std::string_view source, std::string_view accelerator, int accelerators,
                       double measured, double predicted) {
  ScoredRun r;
  r.at.source = source;
  r.at.trust = 'A';
  r.at.run.accelerator = accelerator;
  r.at.run.accelerators = accelerators;
  r.at.run.model = "resnet50";
  r.measured = measured;
  r.predicted = predicted;
  r.low = predicted * 0.9;
  r.high = predicted * 1.1;
  return r;
}

RunConfiguration resnet_on_k80(int accelerators) {
  RunConfiguration run;
  run.accelerator = "K80";
  run.accelerators = run.accelerators_per_node = accelerators;
  run.nodes = 1;
  run.intra_node_link = "pcie3";
  run.model = "resnet50";
  run.precision = "fp32";
  run.strategy = accelerators == 1 ? "single" : "all_reduce";
  run.micro_batch = run.batch_per_accelerator = 64;
  run.global_batch = 64 * accelerators;
  run.stack = "tf1";
  return run;
}

}  // namespace

TEST_CASE("a row runs the variant of a network that its source describes") {
  const auto name_of = [](const RunConfiguration& run) {
    return std::get<ModelByName>(model_of_run(run)->spec).name;
  };
  RunConfiguration run = resnet_on_k80(1);
  run.model = "transformer_xl_base";
  CHECK(name_of(run) == "transformer_xl_base");
  run.framework = "PyTorch NGC / DeepLearningExamples";
  CHECK(name_of(run) == "transformer_xl_base_softmax");
  run.model = "ncf";
  CHECK(name_of(run) == "ncf");
  run.stack = "pytorch-adaptdl";
  CHECK(name_of(run) == "ncf_ml1m");
  // ELECTRA on SQuAD, padded to 384, is its discriminator; BART without a length writes summaries.
  run.model = "electra_base";
  run.sequence_length = 128;
  CHECK(name_of(run) == "electra_base");
  run.sequence_length = 384;
  CHECK(name_of(run) == "bert_base");
  run.model = "bart_large";
  CHECK(name_of(run) == "bart_large");
  run.sequence_length = 0;
  CHECK(name_of(run) == "bart_large_xsum");
}

TEST_CASE(
    "Transformer-big's rows print its batch in tokens: 2,560 of them are 40 sentences of 64") {
  RunConfiguration run = resnet_on_k80(4);
  run.model = "transformer_big";
  run.micro_batch = run.batch_per_accelerator = 2560;
  run.global_batch = 4 * 2560;
  const auto plan = plan_of_run(run, test::shipped_catalog());
  REQUIRE(plan.has_value());
  CHECK(plan->jobs.front().global_batch == 4 * 40);
}

TEST_CASE("errors are summed up by run: median, mean, 90th percentile, worst, bias, coverage") {
  // errors +10 %, -20 %, +40 %; |errors| sorted 0.1 0.2 0.4, p90 at position 1.8: 0.2 + 0.8 * 0.2
  const ScoredRun runs[] = {accuracy_run("a", "T4", 1, 100, 110),
                            accuracy_run("a", "T4", 2, 100, 80),
                            accuracy_run("a", "T4", 4, 100, 140)};
  const Scores s = scores_of(runs);
  CHECK(s.runs == 3);
  CHECK(s.median_absolute_error == Approx(0.2));
  CHECK(s.mean_absolute_error == Approx(0.7 / 3));
  CHECK(s.p90_absolute_error == Approx(0.36));
  CHECK(s.max_absolute_error == Approx(0.4));
  CHECK(s.bias == Approx(0.1));
  CHECK(s.interval_coverage == Approx(1.0 / 3));  // 99 .. 121 holds 100, the others do not
  CHECK(s.interval_median_half_width == Approx(0.1));
}

TEST_CASE(
    "runs that ran are counted where a plan would not take their risk, or no step could run") {
  std::vector<ScoredRun> runs(4, accuracy_run("a", "T4", 1, 100, 110));
  for (ScoredRun& r : runs) {
    r.memory.available = Bytes{10e9};
    r.memory.deviation = 0.1;
  }
  runs[0].memory.activations = Bytes{7e9};   // ln(10 / 7) is 3.6 deviations
  runs[1].memory.activations = Bytes{9e9};   // 1.05: P 15 %
  runs[2].memory.activations = Bytes{14e9};  // P above 99.9 %
  runs[3].memory.activations = Bytes{14e9};
  runs[3].memory_known = false;
  const Evaluation e = evaluate(runs);
  CHECK(e.over_plans_risk == 2);
  CHECK(e.does_not_fit == 1);
  CHECK(e.memory_unknown == 1);
}

TEST_CASE("rank correlation is 1 where the order agrees, -1 where it is turned round") {
  const ScoredRun same[] = {accuracy_run("a", "T4", 1, 1, 5), accuracy_run("a", "T4", 1, 2, 70),
                            accuracy_run("a", "T4", 1, 30, 80)};
  CHECK(scores_of(same).rank_correlation == Approx(1));
  const ScoredRun turned[] = {accuracy_run("a", "T4", 1, 1, 9), accuracy_run("a", "T4", 1, 2, 8),
                              accuracy_run("a", "T4", 1, 3, 7)};
  CHECK(scores_of(turned).rank_correlation == Approx(-1));
  // With ties: predicted ranks 0.5 0.5 2, measured 0 1 2: cov 1.5 + 0 ... = 1.5, var 1.5 and 2.
  const ScoredRun tied[] = {accuracy_run("a", "T4", 1, 1, 5), accuracy_run("a", "T4", 1, 2, 5),
                            accuracy_run("a", "T4", 1, 3, 6)};
  CHECK(scores_of(tied).rank_correlation == Approx(1.5 / std::sqrt(1.5 * 2)));
}

TEST_CASE("a group counts once, however many runs were submitted to it") {
  std::vector<ScoredRun> runs(9, accuracy_run("a", "T4", 1, 100, 130));
  runs.push_back(accuracy_run("a", "T4", 8, 100, 110));
  const Scores s = grouped_scores_of(runs);
  CHECK(s.runs == 2);
  CHECK(s.median_absolute_error == Approx(0.2));  // of 30 % and 10 %
}

TEST_CASE("the baseline is the median of other sources alone, where there are any") {
  const ScoredRun runs[] = {accuracy_run("a", "T4", 1, 100, 0), accuracy_run("b", "T4", 1, 120, 0),
                            accuracy_run("c", "T4", 1, 140, 0), accuracy_run("a", "T4", 2, 100, 0)};
  const auto guesses = baseline(runs, Alike::hardware_and_model);
  REQUIRE(guesses.size() == 3);
  CHECK(guesses[0].predicted == Approx(130));
  CHECK(guesses[1].predicted == Approx(120));
  CHECK(guesses[2].predicted == Approx(110));
}

TEST_CASE("the noise floor is the distance to the median of all, not the others' guess") {
  const ScoredRun runs[] = {accuracy_run("a", "T4", 1, 100, 0), accuracy_run("b", "T4", 1, 120, 0),
                            accuracy_run("c", "T4", 1, 140, 0), accuracy_run("a", "T4", 2, 100, 0)};
  const auto floor = noise_floor(runs, Alike::hardware_and_model);
  REQUIRE(floor.size() == 3);  // the last has no other source to differ from
  for (const ScoredRun& r : floor) CHECK(r.predicted == Approx(120));
  const ScoredRun two[] = {accuracy_run("a", "T4", 1, 100, 0), accuracy_run("b", "T4", 1, 120, 0)};
  CHECK(noise_floor(two, Alike::stack)[0].predicted == Approx(110));
  CHECK(baseline(two, Alike::stack)[0].predicted == Approx(120));
}

TEST_CASE("runs on other nodes or links are not alike in configuration") {
  for (const auto differ : {+[](RunConfiguration& r) { r.nodes = 2; },
                            +[](RunConfiguration& r) { r.accelerators_per_node = 4; },
                            +[](RunConfiguration& r) { r.intra_node_link = "pcie4"; },
                            +[](RunConfiguration& r) { r.inter_node = BytesPerSecond{1e9}; }}) {
    ScoredRun runs[] = {accuracy_run("a", "T4", 8, 100, 0), accuracy_run("b", "T4", 8, 120, 0)};
    REQUIRE(baseline(runs, Alike::configuration).size() == 2);
    differ(runs[1].at.run);
    CHECK(baseline(runs, Alike::configuration).empty());
    CHECK(baseline(runs, Alike::hardware_and_model).size() == 2);
  }
}

TEST_CASE("the noise floor compares runs that are alike in layout and batch, and in stack") {
  std::vector<ScoredRun> runs{accuracy_run("a", "T4", 1, 100, 0),
                              accuracy_run("b", "T4", 1, 120, 0),
                              accuracy_run("c", "T4", 1, 140, 0)};
  runs[1].at.run.stack = "other";
  runs[2].at.run.batch_per_accelerator = 7;
  CHECK(baseline(runs, Alike::hardware_and_model).size() == 3);
  const auto same = baseline(runs, Alike::configuration);
  REQUIRE(same.size() == 2);
  CHECK(same[0].predicted == Approx(120));
  CHECK(baseline(runs, Alike::stack).empty());
}

TEST_CASE("a run is predicted from its configuration by the step model") {
  Predictor predict(test::shipped_catalog());
  const auto one = predict(resnet_on_k80(1));
  REQUIRE(one.has_value());
  // tensorflow/docs site/en/r1/guide/performance/benchmarks.md: 51.9 images/s on Google's K80.
  CHECK(one->rate.v == Approx(51.9).epsilon(0.15));
  CHECK(one->low < one->rate);
  CHECK(one->rate < one->high);
  CHECK(one->stack_known);
  const auto eight = predict(resnet_on_k80(8));
  REQUIRE(eight.has_value());
  CHECK(eight->rate.v > 6 * one->rate.v);
  CHECK(eight->rate.v < 8 * one->rate.v);
}

TEST_CASE(
    "links that a row does not print are those of the accelerator and of a machine of its size") {
  const Catalog& catalog = test::shipped_catalog();
  // K80s copy through the host's memory whatever PCIe is printed; an A100 has no NVLink on a card.
  CHECK(plan_of_run(resnet_on_k80(4), catalog)->pools.front().peer_link.name == "pcie-host");
  RunConfiguration run = resnet_on_k80(4);
  run.accelerator = "A100-SXM4-40";
  CHECK(plan_of_run(run, catalog)->pools.front().peer_link.name == "pcie");
  // Nodes of one V100 have the network of a machine with one, not of one with eight.
  run.accelerator = "V100-SXM2-16";
  run.intra_node_link = "none";
  run.accelerators_per_node = 1;
  run.nodes = 4;
  const double one = plan_of_run(run, catalog)->pools.front().machine.network.value.v;
  run.accelerators = 32;
  run.accelerators_per_node = 8;
  const double eight = plan_of_run(run, catalog)->pools.front().machine.network.value.v;
  CHECK(one < eight / 10);
  // Four T4 and 50 Gb/s are g4dn.12xlarge.
  run.accelerator = "T4";
  run.accelerators_per_node = 4;
  run.accelerators = 16;
  run.inter_node = BytesPerSecond{50e9 / 8};
  CHECK(plan_of_run(run, catalog)->pools.front().network_link.name == "ethernet-ec2");
}

TEST_CASE("what cannot be predicted says why in words that can be counted") {
  Predictor predict(test::shipped_catalog());
  auto r = resnet_on_k80(1);
  r.model = "resnet5000";
  CHECK(predict(r).error() == "no model graph: resnet5000; did you mean 'resnet50'?");
  r = resnet_on_k80(1);
  r.accelerator = "K8000";
  CHECK(predict(r).error() == "unknown accelerator K8000");
  r = resnet_on_k80(1);
  r.precision = "fp7";
  CHECK(predict(r).error() == "precision fp7 is not simulated");
  r.precision = "nvfp4";
  CHECK(predict(r).error() == "no peak of K80 in nvfp4 is known");
  r = resnet_on_k80(8);
  r.strategy = "unknown";
  CHECK(predict(r).error() == "the layout is not printed");
  r = resnet_on_k80(1);
  r.micro_batch = 0.5;
  CHECK(predict(r).error() == "less than one sample an accelerator");
}

TEST_CASE("the dimensions of a transformer must give the parameters that are printed") {
  RunConfiguration r;
  r.model = "gpt";
  r.variant = "gpt2-xl";
  r.layers = 48;
  r.hidden = 1600;
  r.heads = 25;
  r.feed_forward = 6400;
  r.vocabulary = 50257;
  r.sequence_length = 1024;
  r.parameters = 1.5576e9;
  const auto model = model_of_run(r);
  REQUIRE(model.has_value());
  // Tied: 1.5576 B, as published; a second 50,257 x 1,600 matrix would make it 1.638 B.
  CHECK(std::get<ModelFromTransformer>(model->spec).dimensions.tied_output);
  r.parameters = 3e9;
  CHECK(model_of_run(r).error() == "the dimensions of gpt2-xl do not give its printed parameters");
}

TEST_CASE("published measurements are all scored or counted with a reason") {
  const char* data = std::getenv("RECKON_DATA");
  if (data == nullptr) return skip_test("RECKON_DATA names no folder of published data");
  const auto path = std::filesystem::path(data) / "measurements.csv";
  if (!std::filesystem::exists(path)) return skip_test(path.string() + " is not there");
  const MappedFile file(path);
  TextPool pool;
  std::vector<PublishedRun> rows;
  const auto counts = read_published_runs("measurements.csv", file.bytes(), {}, pool,
                                          [&](const PublishedRun& m) { rows.push_back(m); });
  REQUIRE(counts.has_value());
  CHECK(counts->rows > 4000);
  auto scored = score_cold(rows, test::shipped_catalog());
  const AccuracyReport report = make_accuracy_report(*counts, std::move(scored));
  std::int64_t skipped = 0;
  for (const auto& [reason, rows] : report.skipped) skipped += rows.count;
  CHECK(std::int64_t(report.runs.size()) + skipped + report.filtered_out == report.rows);
  CHECK(report.runs.size() > 1500);
  CHECK(report.cold.groups.rank_correlation > 0.95);
  CHECK(report.cold.groups.median_absolute_error < 0.30);
}

TEST_CASE("all rounds of MLPerf are one publisher, a model of a source is a fold of its own") {
  PublishedRun r;
  r.run.model = "gpt";
  r.run.variant = "gpt-h1024-l24";
  r.source = "mlp30";
  CHECK(fold_of(r, HoldOut::source) == "mlp30");
  CHECK(fold_of(r, HoldOut::publisher) == "mlperf");
  CHECK(fold_of(r, HoldOut::model) == "mlp30 gpt-h1024-l24");
  r.source = "mlflow";
  CHECK(fold_of(r, HoldOut::publisher) == "mlflow");
}
