#include "exchange/graphs/fx_json.h"
#include "support/text.h"

#include <fmt/format.h>
#include <rapidcheck.h>
#include <catch2/catch.hpp>
#include <fstream>

using namespace reckon;
using Catch::Matchers::Contains;

namespace {

/// What the lines of docs/commands/model.md wrote of
///   Sequential(Conv2d(3, 8, 3, padding=1), BatchNorm2d(8), ReLU(), MaxPool2d(2), Flatten(),
///              Linear(8 * 8 * 8, 10), Softmax(-1))
/// for one sample of 3 x 16 x 16.
const std::string kNet = R"({"format": "reckon-fx", "name": "Sequential", "nodes": [
{"name": "input_1", "op": "placeholder", "kind": "input", "inputs": [], "shape": [1, 3, 16, 16],
 "dtype": "torch.float32", "weights": {}, "attributes": {}},
{"name": "_0", "op": "call_module", "kind": "Conv2d", "inputs": ["input_1"],
 "shape": [1, 8, 16, 16], "dtype": "torch.float32",
 "weights": {"0.bias": [8], "0.weight": [8, 3, 3, 3]},
 "attributes": {"stride": [1, 1], "padding": [1, 1], "groups": 1, "kernel_size": [3, 3],
 "dilation": [1, 1]}},
{"name": "_1", "op": "call_module", "kind": "BatchNorm2d", "inputs": ["_0"],
 "shape": [1, 8, 16, 16], "dtype": "torch.float32", "weights": {"1.weight": [8], "1.bias": [8]},
 "attributes": {}},
{"name": "_2", "op": "call_module", "kind": "ReLU", "inputs": ["_1"], "shape": [1, 8, 16, 16],
 "dtype": "torch.float32", "weights": {}, "attributes": {}},
{"name": "_3", "op": "call_module", "kind": "MaxPool2d", "inputs": ["_2"], "shape": [1, 8, 8, 8],
 "dtype": "torch.float32", "weights": {},
 "attributes": {"stride": 2, "padding": 0, "kernel_size": 2, "dilation": 1}},
{"name": "_4", "op": "call_module", "kind": "Flatten", "inputs": ["_3"], "shape": [1, 512],
 "dtype": "torch.float32", "weights": {}, "attributes": {}},
{"name": "_5", "op": "call_module", "kind": "Linear", "inputs": ["_4"], "shape": [1, 10],
 "dtype": "torch.float32", "weights": {"5.weight": [10, 512], "5.bias": [10]}, "attributes": {}},
{"name": "_6", "op": "call_module", "kind": "Softmax", "inputs": ["_5"], "shape": [1, 10],
 "dtype": "torch.float32", "weights": {}, "attributes": {}},
{"name": "output", "op": "output", "kind": "output", "inputs": ["_6"], "shape": [1, 10],
 "dtype": "torch.float32", "weights": {}, "attributes": {}}]})";

ImportedGraph imported(const std::string& text) {
  const auto graph = read_fx_graph(text, "net.json");
  if (!graph) FAIL(format(graph.error()));
  auto model = make_graph_model(*graph);
  if (!model) FAIL(format(model.error()));
  return std::move(*model);
}

std::string errors_of(const std::string& text) {
  const auto graph = read_fx_graph(text, "net.json");
  if (!graph) return format(graph.error());
  const auto model = make_graph_model(*graph);
  REQUIRE_FALSE(model.has_value());
  return format(model.error());
}

template <class Op>
int layers_of(const ModelGraph& model) {
  int count = 0;
  for (const Layer& layer : model.layers()) count += std::holds_alternative<Op>(layer.op) ? 1 : 0;
  return count;
}

/// One node with defaults for what a test does not care about.
std::string node(const std::string& name, const std::string& op, const std::string& kind,
                 const std::string& inputs, const std::string& shape,
                 const std::string& weights = "{}", const std::string& dtype = "torch.float32") {
  return fmt::format(R"({{"name": "{}", "op": "{}", "kind": "{}", "inputs": {}, "shape": {},
    "weights": {}, "dtype": "{}"}})",
                     name, op, kind, inputs, shape, weights, dtype);
}
std::string graph_of(const std::vector<std::string>& nodes) {
  std::string text = R"({"format": "reckon-fx", "name": "net", "nodes": [)";
  for (std::size_t i = 0; i < nodes.size(); ++i) text += (i == 0 ? "" : ",") + nodes[i];
  return text + "]}";
}

}  // namespace

TEST_CASE("modules of FX become layers of our kinds, the rest is listed with its share") {
  const ImportedGraph net = imported(kNet);
  const ModelGraph& m = net.model;
  // Conv 8 3 3 3 + 8, norm 2 8, linear 10 512 + 10
  CHECK(m.parameters() == 8 * 27 + 8 + 16 + 5120 + 10);
  CHECK(m.sample_unit() == SampleUnit::image);
  CHECK(layers_of<Conv2d>(m) == 1);
  CHECK(layers_of<BatchNorm>(m) == 1);
  CHECK(layers_of<Activation>(m) == 1);
  CHECK(layers_of<Pool2d>(m) == 1);
  CHECK(layers_of<Linear>(m) == 1);
  // 27 multiply-adds for each of 8 16 16 numbers, 512 for each of 10.
  CHECK(m.forward_macs() == 27 * 8 * 16 * 16 + 5120);
  REQUIRE(net.unmapped.size() == 1);
  CHECK(net.unmapped[0].kind == "Softmax");
  // 20 numbers of what moves: conv 768 + 2048, norm 2 2048 + 2048, ReLU 2 2048, pool 2048 + 512,
  // linear 512 + 10, softmax and loss 10 + 10 each.
  CHECK(net.unmapped[0].share == Approx(20. / (2816 + 6144 + 4096 + 2560 + 522 + 20 + 20)));
  CHECK_THAT(notes_of(net)[0], Contains("Softmax x 1: no layer kind of ours, bound by memory"));
  CHECK_THAT(notes_of(net)[1], Contains("the file has no loss"));
}

TEST_CASE("products without a layer kind keep their multiply-adds") {
  // Attention of 4 heads of 16 features over 10 tokens: scores and values 4 10 10 16 each.
  const std::string text =
      graph_of({node("q", "placeholder", "q", "[]", "[1, 4, 10, 16]"),
                node("s", "call_function", "matmul", R"(["q", "q"])", "[1, 4, 10, 10]"),
                node("p", "call_function", "softmax", R"(["s"])", "[1, 4, 10, 10]"),
                node("y", "call_function", "matmul", R"(["p", "q"])", "[1, 4, 10, 16]"),
                node("a", "call_function", "scaled_dot_product_attention", R"(["y", "q", "q"])",
                     "[1, 4, 10, 16]"),
                node("output", "output", "output", R"(["a"])", "[]")});
  CHECK(imported(text).model.forward_macs() == 2 * 6400 + 2 * 6400);
}

TEST_CASE("a weight that two modules share counts once") {
  const std::string linear = R"({"fc.weight": [8, 8]})";
  const std::string text =
      graph_of({node("x", "placeholder", "x", "[]", "[1, 8]"),
                node("a", "call_module", "Linear", R"(["x"])", "[1, 8]", linear),
                node("b", "call_module", "Linear", R"(["a"])", "[1, 8]", linear),
                node("output", "output", "output", R"(["b"])", "[]")});
  const ModelGraph m = imported(text).model;
  CHECK(m.parameters() == 64);
  CHECK(m.forward_macs() == 128);
}

TEST_CASE("tokens are looked up in a table, of which a sample reads its rows") {
  const std::string text =
      graph_of({node("ids", "placeholder", "ids", "[]", "[1, 12]", "{}", "torch.int64"),
                node("wte", "call_module", "Embedding", R"(["ids"])", "[1, 12, 32]",
                     R"({"wte.weight": [1000, 32]})"),
                node("head", "call_module", "Linear", R"(["wte"])", "[1, 12, 1000]",
                     R"({"head.weight": [1000, 32]})"),
                node("output", "output", "output", R"(["head"])", "[]")});
  const ModelGraph m = imported(text).model;
  CHECK(m.sample_unit() == SampleUnit::sequence);
  CHECK(m.sequence_length() == 12);
  CHECK(m.parameters() == 64'000);
  CHECK(layers_of<Embedding>(m) == 1);
}

TEST_CASE("what does not lead to the output is left out") {
  const std::string text =
      graph_of({node("x", "placeholder", "x", "[]", "[1, 8]"),
                node("a", "call_module", "Linear", R"(["x"])", "[1, 4]", R"({"a.w": [4, 8]})"),
                node("b", "call_module", "Linear", R"(["x"])", "[1, 6]", R"({"b.w": [6, 8]})"),
                node("output", "output", "output", R"(["a"])", "[]")});
  CHECK(imported(text).model.parameters() == 32);
}

TEST_CASE("what is wrong with a graph comes all at once, at its node") {
  CHECK_THAT(errors_of("[1]"), Contains("the file is no JSON object"));
  CHECK_THAT(errors_of(R"({"format": "other"})"), Contains("no graph of PyTorch FX"));
  const std::string errors =
      errors_of(test::changed(test::changed(kNet, R"("inputs": ["_3"])", R"("inputs": ["_9"])"),
                              R"([10, 512])", R"([10, -512])"));
  CHECK_THAT(errors,
             Contains("net.json:17:") && Contains("node '_4' takes '_9', which no earlier"));
  CHECK_THAT(errors, Contains("a shape of node '_5' is wrong"));
  CHECK_THAT(errors_of(test::changed(kNet, "[1, 3, 16, 16]", "[4, 3, 16, 16]")),
             Contains("input 'input_1' is (4, 3, 16, 16): its first axis is no batch of one"));
  CHECK_THAT(errors_of(test::changed(kNet, R"("shape": [1, 8, 8, 8])", R"("shape": [])")),
             Contains("the shape of '_3' (MaxPool) is not known"));
}

TEST_CASE("any text is answered, with a network or with what is wrong") {
  CHECK(rc::check("bytes changed", [] {
    std::string text = kNet;
    const int changes = *rc::gen::inRange(1, 4);
    for (int i = 0; i < changes; ++i)
      text[*rc::gen::inRange<std::size_t>(0, text.size())] = *rc::gen::arbitrary<char>();
    const auto graph = read_fx_graph(text, "net.json");
    if (!graph) {
      RC_ASSERT(!format(graph.error()).empty());
      return;
    }
    const auto model = make_graph_model(*graph);
    if (!model) RC_ASSERT(!format(model.error()).empty());
  }));
}

TEST_CASE("what Debian's PyTorch wrote by the lines of the docs is read") {
  // A block of attention: 100 x 32 tied with the output, positions 12 x 32, a norm, qkv and out.
  std::ifstream in(std::string(RECKON_SOURCE_DIR) + "/tests/fuzz/corpus/graphs/fx_block");
  std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  REQUIRE(text.size() > 1);
  const ImportedGraph net = imported(text.substr(1));
  CHECK(net.model.parameters() == 7872);  // as torch counts them
  // qkv 32 96, out 32 32, head 32 100 for each of 12 tokens; scores and values 4 12 12 8 each.
  CHECK(net.model.forward_macs() == 12 * (32 * 96 + 32 * 32 + 32 * 100) + 2 * 4 * 12 * 12 * 8);
  for (const UnmappedKind& kind : net.unmapped) CHECK(kind.kind != "matmul");
}
