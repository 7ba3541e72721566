#include <array>

#include "sim/model/layer_text.h"

// Each kind of layer: how it is written, and how that is read.
namespace reckon::layer_text {
namespace {

using A = Attributes;

LayerOp read_linear(A& a) {
  return Linear{a.number("in", a.features()), a.main_number(), a.flag("bias", true)};
}

LayerOp read_conv2d(A& a) {
  const auto kernel = a.pair("kernel", 1);
  const auto padding = a.pair("padding", 0);
  Conv2d op{.in = a.number("in", a.channels()),
            .out = a.main_number(),
            .kernel_h = kernel.first,
            .kernel_w = kernel.second,
            .stride = a.number("stride", 1),
            .padding = padding.first,
            .groups = a.number("groups", 1),
            .bias = a.flag("bias", true)};
  if (padding.second != padding.first) op.padding_w = padding.second;
  return op;
}

LayerOp read_activation(A& a) { return Activation{a.main_word<ActivationKind>()}; }

LayerOp read_pool2d(A& a) {
  const PoolKind kind = a.main_word<PoolKind>();
  const std::int64_t kernel = a.number("kernel", 2);
  return Pool2d{kind, kernel, a.number("stride", kernel), a.number("padding", 0)};
}

LayerOp read_attention(A& a) {
  Attention op;
  op.heads = a.main_number();
  op.kv_heads = a.number("kv_heads", op.heads);
  // One input holds q, k and v side by side, three hold one each.
  const std::int64_t parts = a.inputs() == 1 ? op.heads + 2 * op.kv_heads : op.heads;
  const bool divides = parts > 0 && a.features() % parts == 0;
  op.head_width = a.number(
      "head_width", divides ? std::max<std::int64_t>(1, a.features() / parts) : std::int64_t{1});
  op.causal = a.flag("causal", true);
  op.dropout = a.real("dropout", 0);
  op.window = a.number("window", 0);
  op.value_width = a.number("value_width", 0);
  op.alibi = a.flag("alibi", false);
  return op;
}

LayerOp read_embedding_bag(A& a) {
  return EmbeddingBag{a.number("rows", std::nullopt), a.main_number(),
                      a.number("ids", a.features())};
}

LayerOp read_expert_linear(A& a) {
  const std::int64_t experts = a.number("experts", std::nullopt);
  const std::int64_t top_k = a.number("top_k", std::nullopt);
  const std::int64_t in = a.number("in", a.features());
  return ExpertLinear{experts, top_k, in, a.main_number(), a.flag("bias", false)};
}

LayerOp read_conv3d(A& a) {
  return Conv3d{.in = a.number("in", a.channels()),
                .out = a.main_number(),
                .kernel = a.number("kernel", 3),
                .stride = a.number("stride", 1),
                .padding = a.number("padding", 1),
                .bias = a.flag("bias", true)};
}

LayerOp read_transposed_conv(A& a) {
  const bool volume = a.inputs() > 0 && a.input(0).size() == 4;
  return TransposedConv{.in = a.number("in", a.channels()),
                        .out = a.main_number(),
                        .kernel = a.number("kernel", 2),
                        .stride = a.number("stride", 2),
                        .dimensions = volume ? 3 : 2,
                        .bias = a.flag("bias", true)};
}

template <class Op>
LayerOp plain(A& a) {
  a.no_main();
  return Op{};
}

constexpr std::array kKinds{
    Kind{{"input", "{input: 3x224x224}"}, [](A&) -> LayerOp { return InputLayer{}; }},
    Kind{{"linear", "{linear: 10, bias: false}"}, read_linear},
    Kind{{"conv2d", "{conv2d: 64, kernel: 1x7, stride: 2, padding: 0x3, groups: 1, bias: false}"},
         read_conv2d},
    Kind{{"batch_norm", "{batch_norm: true}"},
         [](A& a) -> LayerOp {
           a.no_main();
           return BatchNorm{a.number("channels", a.channels())};
         }},
    Kind{{"layer_norm", "{layer_norm: true, bias: false}"},
         [](A& a) -> LayerOp {
           a.no_main();
           return LayerNorm{a.number("width", a.features()), a.flag("bias", true)};
         }},
    Kind{{"rms_norm", "{rms_norm: true}"},
         [](A& a) -> LayerOp {
           a.no_main();
           const std::int64_t heads = a.number("heads", 1);
           return RmsNorm{a.number("width", heads > 0 ? a.features() / heads : 1), heads};
         }},
    Kind{{"activation", "{activation: relu}"}, read_activation},
    Kind{{"pool2d", "{pool2d: max, kernel: 3, stride: 2, padding: 1}"}, read_pool2d},
    Kind{{"global_average_pool", "{global_average_pool: true}"}, plain<GlobalAveragePool>},
    Kind{{"flatten", "{flatten: true}"}, plain<Flatten>},
    Kind{{"dropout", "{dropout: 0.5}"},
         [](A& a) -> LayerOp {
           return Dropout{a.main_real(), a.flag("whole_sample", false)};
         }},
    Kind{{"embedding", "{embedding: 768, rows: 50257}"},
         [](A& a) -> LayerOp {
           return Embedding{a.number("rows", std::nullopt), a.main_number()};
         }},
    Kind{{"position_embedding", "{position_embedding: 1024}"},
         [](A& a) -> LayerOp {
           return PositionEmbedding{a.main_number(), a.number("width", a.features())};
         }},
    Kind{{"rotary_embedding", "{rotary_embedding: 128, theta: 500000}"},
         [](A& a) -> LayerOp {
           return RotaryEmbedding{a.main_number(), a.real("theta", 10000), a.number("rotated", 0)};
         }},
    Kind{{"sinusoidal_positions", "{sinusoidal_positions: true}"},
         [](A& a) -> LayerOp {
           a.no_main();
           return SinusoidalPositions{a.number("width", a.features())};
         }},
    Kind{{"class_token", "{class_token: true}"},
         [](A& a) -> LayerOp {
           a.no_main();
           return ClassToken{a.number("width", a.features())};
         }},
    Kind{{"image_tokens", "{image_tokens: true}"}, plain<ImageTokens>},
    Kind{{"attention", "{attention: 32, kv_heads: 8, head_width: 128, from: \"q, k, v\"}"},
         read_attention},
    Kind{{"select_tokens", "{select_tokens: 1}"},
         [](A& a) -> LayerOp {
           return SelectTokens{a.main_number(), a.flag("masked", false)};
         }},
    Kind{{"embedding_bag", "{embedding_bag: 128, rows: 40000000}"}, read_embedding_bag},
    Kind{{"select_features", "{select_features: 13, first: 0}"},
         [](A& a) -> LayerOp {
           return SelectFeatures{a.number("first", 0), a.main_number()};
         }},
    Kind{{"pairwise_dots", "{pairwise_dots: \"dense, table_0, table_1\"}"},
         [](A& a) -> LayerOp {
           return PairwiseDots{a.inputs(), a.features()};
         },
         true},
    Kind{{"expert_dispatch", "{expert_dispatch: 8, top_k: 2, from: \"norm, scores\"}"},
         [](A& a) -> LayerOp {
           return ExpertDispatch{a.main_number(), a.number("top_k", std::nullopt)};
         }},
    Kind{{"expert_linear", "{expert_linear: 14336, experts: 8, top_k: 2, from: \"rows, scores\"}"},
         read_expert_linear},
    Kind{{"expert_combine", "{expert_combine: 8, top_k: 2, from: \"rows, scores\"}"},
         [](A& a) -> LayerOp {
           return ExpertCombine{a.main_number(), a.number("top_k", std::nullopt),
                                a.flag("normalize", true)};
         }},
    Kind{{"add", "{add: \"a, b\"}"}, [](A&) -> LayerOp { return Add{}; }, true},
    Kind{{"multiply", "{multiply: \"a, b\"}"}, [](A&) -> LayerOp { return Multiply{}; }, true},
    Kind{{"concat", "{concat: \"a, b\"}"}, [](A&) -> LayerOp { return Concat{}; }, true},
    Kind{{"scale", "{scale: 0.5}"}, [](A& a) -> LayerOp { return ScaleBy{a.main_real()}; }},
    Kind{{"softmax_cross_entropy", "{softmax_cross_entropy: true}"},
         [](A& a) -> LayerOp {
           a.no_main();
           return SoftmaxCrossEntropy{a.number("classes", a.features())};
         }},
    Kind{{"sigmoid_cross_entropy", "{sigmoid_cross_entropy: true}"}, plain<SigmoidCrossEntropy>},
    Kind{{"mean_squared_error", "{mean_squared_error: true}"}, plain<MeanSquaredError>},
    Kind{{"extra_input", "{extra_input: 77, width: 1024}"},
         [](A& a) -> LayerOp {
           return ExtraInput{a.main_number(), a.number("width", 0)};
         }},
    Kind{{"conv3d", "{conv3d: 64, kernel: 3, stride: 1, padding: 1, bias: false}"}, read_conv3d},
    Kind{{"transposed_conv", "{transposed_conv: 32, kernel: 2, stride: 2}"}, read_transposed_conv},
    Kind{{"group_norm", "{group_norm: 32}"},
         [](A& a) -> LayerOp {
           return GroupNorm{a.number("channels", a.channels()), a.main_number()};
         }},
    Kind{{"upsample", "{upsample: 2}"}, [](A& a) -> LayerOp { return Upsample{a.main_number()}; }},
    Kind{{"roi_align", "{roi_align: 512, size: 7, from: \"p2, p3\"}"},
         [](A& a) -> LayerOp {
           return RoiAlign{a.main_number(), a.number("size", 7)};
         }},
    Kind{{"region_tokens", "{region_tokens: 512}"},
         [](A& a) -> LayerOp { return RegionTokens{a.main_number()}; }},
    Kind{{"regroup_tokens", "{regroup_tokens: true, join: 2, split: 1}"},
         [](A& a) -> LayerOp {
           a.no_main();
           return RegroupTokens{a.number("join", 1), a.number("split", 1)};
         }},
    Kind{{"pair_sums", "{pair_sums: \"frames, symbols\"}"}, plain<PairSums>, true},
    Kind{{"concat_to_heads", "{concat_to_heads: 128, from: \"k, rotary\"}"},
         [](A& a) -> LayerOp { return ConcatToHeads{a.main_number()}; }},
    Kind{{"recurrence", "{recurrence: 1024, gates: 4}"}, [](A& a) -> LayerOp {
           return Recurrence{a.main_number(), a.number("gates", 4)};
         }}};

}  // namespace

std::span<const Kind> kinds() { return kKinds; }

}  // namespace reckon::layer_text
