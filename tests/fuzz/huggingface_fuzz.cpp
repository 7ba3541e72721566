#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "exchange/huggingface/huggingface.h"
#include "sim/model/shapes.h"

// Any text is a Hugging Face config or gives diagnostics; what is read either becomes a network
// with parameters and work, or says why not.
namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

/// Building is linear in the layers, and the reader allows more than a fuzzer has time for.
bool quick(const reckon::HuggingFaceModel& model) {
  constexpr std::int64_t kLayersMost = 256;
  const auto blocks = [](const reckon::Stack& s) {
    return static_cast<std::int64_t>(s.blocks.size());
  };
  const auto layers = reckon::overloaded{
      [&](const reckon::LanguageNetwork& n) { return blocks(n.stack); },
      [&](const reckon::EncoderDecoder& n) { return blocks(n.encoder) + blocks(n.decoder); },
      [&](const reckon::VisionLanguage& n) {
        return blocks(n.vision.stack) + blocks(n.language.stack);
      },
      [&](const reckon::DualEncoder& n) { return blocks(n.vision.stack) + blocks(n.text.stack); },
      [&](const reckon::FluxTransformer& n) { return n.double_blocks + n.single_blocks; },
      [&](const auto& d) { return d.layers; }};
  return std::visit(layers, model.dimensions) <= kLayersMost;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto model = reckon::read_huggingface_config(text, "config.json");
  if (!model) {
    require(!reckon::format(model.error()).empty());
    return 0;
  }
  require(!model->name.empty() && model->longest_sequence >= 0);
  if (!quick(*model)) return 0;
  const auto graph = reckon::make_model(*model, 128);
  if (!graph) {
    require(!reckon::format(graph.error()).empty());
    return 0;
  }
  require(graph->parameters() > 0 && graph->forward_flops().v > 0);
  return 0;
}
