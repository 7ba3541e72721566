#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "exchange/graphs/fx_json.h"
#include "exchange/graphs/onnx_file.h"

// Any bytes are a graph of PyTorch FX or of ONNX, by the first of them, or give diagnostics; what
// is read becomes a network with work, or says why not.
namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const auto graph = data[0] % 2 == 0 ? reckon::read_fx_graph(bytes, "net.json")
                                      : reckon::read_onnx_graph(bytes, "net.onnx", 16);
  if (!graph) {
    require(!reckon::format(graph.error()).empty());
    return 0;
  }
  const auto model = reckon::make_graph_model(*graph);
  if (!model) {
    require(!reckon::format(model.error()).empty());
    return 0;
  }
  require(model->model.parameters() >= 0 && !model->model.layers().empty());
  double share = 0;
  for (const reckon::UnmappedKind& kind : model->unmapped) share += kind.share;
  require(share >= 0 && share <= 1.000001);
  return 0;
}
