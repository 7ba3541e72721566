#include <fmt/format.h>

#include <vector>

#include "executor/probe/probe.h"
#include "executor/probe/scratch_folder.h"
#include "executor/train/checkpoint/durable_file.h"
#include "executor/train/data/loader.h"

namespace reckon {
namespace {

constexpr std::int64_t kImages = 4096, kRecord = 1 + 3 * 32 * 32, kBatch = 256;

/// Classes 0 to 9 and pixels that differ.
std::vector<std::byte> cifar_file() {
  std::vector<std::byte> bytes(std::size_t(kImages * kRecord));
  for (std::size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = i % std::size_t(kRecord) == 0 ? std::byte(i / std::size_t(kRecord) % 10)
                                             : std::byte((i * 2654435761u) >> 11 & 0xff);
  return bytes;
}

/// The smallest network that takes such images.
ModelGraph image_model() {
  std::vector<Layer> layers(4);
  layers[0].op = InputLayer{};
  layers[1].op = Flatten{};
  layers[1].inputs = {LayerId{0}};
  layers[2].op = Linear{.in = 3 * 32 * 32, .out = 10};
  layers[2].inputs = {LayerId{1}};
  layers[3].op = SoftmaxCrossEntropy{.classes = 10};
  layers[3].inputs = {LayerId{2}};
  const char* const names[] = {"image", "flat", "scores", "loss"};
  for (std::size_t i = 0; i < layers.size(); ++i) layers[i].name = names[i];
  return ModelGraph::make("images", SampleUnit::image, {3, 32, 32}, std::move(layers)).value();
}

}  // namespace

std::vector<ProbeRecord> probe_data_loading(const ProbeBench& bench,
                                            const std::filesystem::path& directory) {
  const ScratchFolder folder(directory);
  const std::vector<std::byte> content = cifar_file();
  const std::span<const std::byte> parts[] = {content};
  write_durably(folder.path() / "data_batch_1.bin", parts);
  const ModelGraph model = image_model();
  const auto source =
      open_data({DataFormat::cifar10, folder.path().string()}, folder.path(), model, 1, kImages);
  std::vector<ProbeRecord> out;
  for (const int threads : {1, bench.workers.count()}) {
    if (!out.empty() && threads == 1) break;
    DataLoader loader(*source, sample_format(model),
                      {.global_batch = kBatch,
                       .own = kBatch,
                       .micro_batch = kBatch,
                       .threads = threads,
                       .prefetch = 2 * threads + 1});
    ProbeRecord r;
    r.kind = "data_loading";
    r.item = fmt::format("{} images of 3 x 32 x 32, cached, {} thread{}", kBatch, threads,
                         threads == 1 ? "" : "s");
    r.threads = threads;
    r.bytes = Bytes{double(kBatch * kRecord)};
    r.samples = kBatch;
    // Many batches a repetition: those that lie ready would hide what they took to read.
    const std::int64_t inner = 8 * (2 * threads + 1);
    summarize(repeat_timed(bench.rule, inner, [&] { loader.next(); }), r);
    out.push_back(r);
  }
  return out;
}

}  // namespace reckon
