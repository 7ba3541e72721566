#include <fmt/format.h>

#include <array>

#include "sim/model/zoo/recurrent.h"
#include "sim/model/zoo/speech.h"
#include "sim/model/zoo/vision/convolutions.h"

// Speech recognition by convolutions.
namespace reckon {
namespace {

constexpr std::int64_t kFilters = 64;     // of a frame
constexpr std::int64_t kCharacters = 29;  // a space, 26 letters, an apostrophe and CTC's blank

/// A row of the papers' tables.
struct JasperBlock {
  std::int64_t channels, kernel, repeats;
  double dropout;
  bool residual;
};

/// Along the time, which is as long behind it: (C, 1, T).
Conv2d along_time(std::int64_t in, std::int64_t out, std::int64_t kernel, std::int64_t stride = 1) {
  return {.in = in,
          .out = out,
          .kernel_w = kernel,
          .stride = stride,
          .padding = 0,
          .padding_w = kernel / 2};
}

class Acoustic {
 public:
  /// separable: each convolution is one along the time of each channel and one of all channels.
  /// dense: a block's residual is the sum over the inputs of all blocks before it.
  Acoustic(bool separable, bool dense) : separable_(separable), dense_(dense), net_(512) {}

  Expected<ModelGraph> build(std::string name, std::int64_t frames,
                             std::span<const JasperBlock> blocks) {
    net_.set_group("input");
    Features x{net_.add("input", InputLayer{}, std::vector<LayerId>{}), kFilters};
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      block_ = fmt::format("encoder.layers.{}", i);
      net_.set_group(block_);
      x = block(blocks[i], i == 0 ? 2 : 1, i + 1 < blocks.size(), x);
    }
    net_.set_group("decoder");
    Conv2d last = along_time(x.channels, kCharacters, 1);
    last.bias = true;
    LayerId y = net_.add("decoder.layers.0", last, x.layer);
    y = net_.add("decoder.frames", ImageTokens{}, y);
    net_.add("loss", SoftmaxCrossEntropy{kCharacters}, y);
    return ModelGraph::make(std::move(name), SampleUnit::sequence, {kFilters, 1, frames},
                            net_.take());
  }

 private:
  Features block(const JasperBlock& b, std::int64_t stride, bool separable, Features x) {
    if (!dense_) inputs_.clear();
    inputs_.push_back(x);
    Features y = x;
    for (std::int64_t i = 0; i < b.repeats; ++i) {
      const std::string name = fmt::format("{}.conv.{}", block_, i);
      if (separable_ && separable) {
        Conv2d depthwise = along_time(y.channels, y.channels, b.kernel, stride);
        depthwise.groups = y.channels;
        y.layer = net_.add(name + ".depthwise", depthwise, y.layer);
        y.layer = conv_bn(net_, name, name + ".bn", along_time(y.channels, b.channels, 1), y.layer);
      } else {
        y.layer = conv_bn(net_, name, name + ".bn",
                          along_time(y.channels, b.channels, b.kernel, stride), y.layer);
      }
      y.channels = b.channels;
      if (i + 1 < b.repeats) y.layer = activate(name, b.dropout, y.layer);
    }
    if (b.residual) y.layer = add_residuals(y);
    // Only the blocks with residuals pass their inputs on.
    if (!b.residual) inputs_.clear();
    y.layer = activate(block_ + ".out", b.dropout, y.layer);
    return y;
  }

  LayerId add_residuals(Features y) {
    std::vector<LayerId> terms{y.layer};
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      const std::string name = fmt::format("{}.res.{}", block_, i);
      terms.push_back(conv_bn(net_, name, name + ".bn",
                              along_time(inputs_[i].channels, y.channels, 1), inputs_[i].layer));
    }
    return net_.add(block_ + ".add", Add{}, terms);
  }

  LayerId activate(const std::string& name, double dropout, LayerId x) {
    x = net_.add(name + ".relu", Activation{}, x);
    return net_.add(name + ".dropout", Dropout{dropout}, x);
  }

  bool separable_, dense_;
  LayerList net_;
  std::string block_;
  std::vector<Features> inputs_;
};

}  // namespace

Expected<ModelGraph> make_jasper(std::string name, std::int64_t frames) {
  constexpr std::array kBlocks{
      JasperBlock{256, 11, 1, 0.2, false}, JasperBlock{256, 11, 5, 0.2, true},
      JasperBlock{256, 11, 5, 0.2, true},  JasperBlock{384, 13, 5, 0.2, true},
      JasperBlock{384, 13, 5, 0.2, true},  JasperBlock{512, 17, 5, 0.2, true},
      JasperBlock{512, 17, 5, 0.2, true},  JasperBlock{640, 21, 5, 0.3, true},
      JasperBlock{640, 21, 5, 0.3, true},  JasperBlock{768, 25, 5, 0.3, true},
      JasperBlock{768, 25, 5, 0.3, true},  JasperBlock{896, 29, 1, 0.4, false},
      JasperBlock{1024, 1, 1, 0.4, false}};
  return Acoustic(false, true).build(std::move(name), frames, kBlocks);
}

Expected<ModelGraph> make_quartznet(std::string name, std::int64_t frames) {
  std::vector<JasperBlock> blocks{{256, 33, 1, 0, false}};
  for (const auto& [channels, kernel] : {std::pair{256, 33}, std::pair{256, 39}, std::pair{512, 51},
                                         std::pair{512, 63}, std::pair{512, 75}})
    blocks.insert(blocks.end(), 3, JasperBlock{channels, kernel, 5, 0, true});
  blocks.push_back({512, 87, 1, 0, false});
  blocks.push_back({1024, 1, 1, 0, false});
  return Acoustic(true, false).build(std::move(name), frames, blocks);
}

Expected<ModelGraph> make_deepspeech2(std::string name, std::int64_t frames) {
  constexpr std::int64_t kFrequencies = 161, kChannels = 32, kRows = 41, kHidden = 800, kGates = 3;
  LayerList net(64);
  net.set_group("conv");
  LayerId x = net.add("input", InputLayer{}, std::vector<LayerId>{});
  Conv2d op{.in = 1,
            .out = kChannels,
            .kernel_h = 41,
            .kernel_w = 11,
            .stride = 2,
            .padding = 20,
            .bias = true,
            .padding_w = 5};
  x = net.add("conv.2", Activation{}, conv_bn(net, "conv.0", "conv.1", op, x));
  op.in = kChannels;
  op.out = 2 * kChannels;
  op.kernel_h = 21;
  op.padding = 10;
  x = net.add("conv.5", Activation{}, conv_bn(net, "conv.3", "conv.4", op, x));
  // Rows of frequencies are features of a frame, and each step in time here is two.
  x = net.add("conv.frames", ImageTokens{}, x);
  x = net.add("conv.features", RegroupTokens{.join = kRows}, x);
  x = net.add("conv.times", RegroupTokens{.join = 1, .split = 2}, x);
  std::int64_t in = kRows * kChannels;
  for (int i = 0; i < 5; ++i) {
    const std::string layer = fmt::format("rnns.{}", i);
    net.set_group(layer);
    if (i > 0) x = net.add(layer + ".batch_norm", LayerNorm{in}, x);
    const LayerId forward = recurrent_layer(net, layer + ".forward", {in, kHidden, kGates}, x);
    const LayerId backward = recurrent_layer(net, layer + ".backward", {in, kHidden, kGates}, x);
    x = net.add(layer + ".sum", Add{}, {forward, backward});
    in = kHidden;
  }
  net.set_group("fc");
  x = net.add("fc.0", LayerNorm{kHidden}, x);
  x = net.add("fc.1", Linear{kHidden, kCharacters, false}, x);
  net.add("loss", SoftmaxCrossEntropy{kCharacters}, x);
  static_assert((kFrequencies + 3) / 4 == kRows);
  return ModelGraph::make(std::move(name), SampleUnit::sequence, {1, kFrequencies, frames},
                          net.take());
}

}  // namespace reckon
