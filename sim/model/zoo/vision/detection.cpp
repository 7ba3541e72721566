#include "sim/model/zoo/vision/detection.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>

#include "sim/model/zoo/vision/resnet.h"

namespace reckon {
namespace {

Conv2d biased(Conv2d conv) {
  conv.bias = true;
  return conv;
}

constexpr std::int64_t kPyramid = 256;  // channels of a feature pyramid

/// The feature pyramid over a backbone's stages [Lin 2017, arXiv:1612.03144, section 3]; finest
/// level first.
std::vector<LayerId> pyramid(LayerList& net, std::span<const Features> stages) {
  net.set_group("fpn");
  std::vector<LayerId> levels(stages.size());
  LayerId above{};
  for (std::size_t i = stages.size(); i-- > 0;) {
    LayerId x = net.add(fmt::format("fpn.inner_blocks.{}", i),
                        biased(square(stages[i].channels, kPyramid, 1, 1)), stages[i].layer);
    if (i + 1 < stages.size()) {
      above = net.add(fmt::format("fpn.upsample.{}", i), Upsample{2}, above);
      x = net.add(fmt::format("fpn.add.{}", i), Add{}, {x, above});
    }
    above = x;
    levels[i] =
        net.add(fmt::format("fpn.layer_blocks.{}", i), biased(square(kPyramid, kPyramid, 3, 1)), x);
  }
  return levels;
}

/// Convolutions that several feature maps go through, with the same kernels.
class SharedConvs {
 public:
  SharedConvs(LayerList& net, std::string name) : net_(net), name_(std::move(name)) {}

  LayerId operator()(const std::string& conv, const Conv2d& op, LayerId x, std::size_t level) {
    const std::string own = fmt::format("{}.{}.{}", name_, conv, level);
    const auto at = std::find_if(owners_.begin(), owners_.end(),
                                 [&](const auto& owner) { return owner.first == conv; });
    if (at != owners_.end()) return net_.add_tied(own, op, x, at->second);
    const LayerId owner = net_.add(own, op, x);
    owners_.emplace_back(conv, owner);
    return owner;
  }
  LayerId relu(const std::string& conv, LayerId x, std::size_t level) {
    return net_.add(fmt::format("{}.{}.{}.relu", name_, conv, level), Activation{}, x);
  }
  /// A loss over all points of what comes out.
  LayerId loss(const std::string& conv, const LayerOp& op, LayerId x, std::size_t level) {
    const std::string own = fmt::format("{}.{}.{}", name_, conv, level);
    return net_.add(own + ".loss", op, net_.add(own + ".flat", Flatten{}, x));
  }

 private:
  LayerList& net_;
  std::string name_;
  std::vector<std::pair<std::string, LayerId>> owners_;
};

std::size_t layers_of(const ResNetShape& shape) {
  std::size_t blocks = 0;
  for (const int n : shape.blocks) blocks += static_cast<std::size_t>(n);
  return 160 + 12 * blocks;
}

/// The maps that SSD predicts from: the backbone's, and five smaller ones behind it.
std::vector<Features> ssd_maps(LayerList& net, Features x, bool narrow_with_norms) {
  struct Step {
    std::int64_t inner, narrow_inner, out, stride;
  };
  constexpr std::array<Step, 5> kSteps{{{256, 256, 512, 2},
                                        {256, 256, 512, 2},
                                        {128, 128, 256, 2},
                                        {128, 128, 256, 1},
                                        {128, 128, 256, 1}}};
  std::vector<Features> maps{x};
  for (std::size_t i = 0; i < kSteps.size(); ++i) {
    const Step& step = kSteps[i];
    const std::int64_t inner = narrow_with_norms ? step.narrow_inner : step.inner;
    const std::string name = fmt::format("additional_blocks.{}", i);
    net.set_group(name);
    Conv2d first = square(x.channels, inner, 1, 1),
           second = square(inner, step.out, 3, step.stride);
    if (step.stride == 1) second.padding = 0;
    int position = 0;
    const auto add = [&](const LayerOp& op) {
      x.layer = net.add(fmt::format("{}.{}", name, position++), op, x.layer);
    };
    for (Conv2d conv : {first, second}) {
      conv.bias = !narrow_with_norms;
      add(conv);
      if (narrow_with_norms) add(BatchNorm{conv.out});
      add(Activation{});
    }
    x.channels = step.out;
    maps.push_back(x);
  }
  return maps;
}

}  // namespace

Expected<ModelGraph> make_ssd300(std::string name, const Ssd300Shape& shape) {
  constexpr std::int64_t kClasses = 81, kBox = 4;
  constexpr std::array<std::int64_t, 6> kBoxes{4, 6, 6, 6, 4, 4};  // at each point of a map
  LayerList net(layers_of(shape.backbone));
  net.set_group("stem");
  const LayerId image = net.add("input", InputLayer{}, std::vector<LayerId>{});
  const auto stages = resnet_stages(net, shape.backbone, image, {.stages = 3, .last_stride = 1});
  const auto maps = ssd_maps(net, stages.back(), shape.narrow_with_norms);
  net.set_group("heads");
  std::vector<LayerId> losses;
  for (std::size_t i = 0; i < maps.size(); ++i) {
    const auto head = [&](const std::string& what, std::int64_t out) {
      const Conv2d conv = biased(square(maps[i].channels, kBoxes[i] * out, 3, 1));
      return net.add(fmt::format("{}.{}", what, i), conv, maps[i].layer);
    };
    const LayerId box = net.add(fmt::format("loc.{}.flat", i), Flatten{}, head("loc", kBox));
    losses.push_back(net.add(fmt::format("loc.{}.loss", i), MeanSquaredError{}, box));
    LayerId labels = head("conf", kClasses);
    labels = net.add(fmt::format("conf.{}.tokens", i), ImageTokens{}, labels);
    labels = net.add(fmt::format("conf.{}.boxes", i), RegroupTokens{1, kBoxes[i]}, labels);
    losses.push_back(
        net.add(fmt::format("conf.{}.loss", i), SoftmaxCrossEntropy{kClasses}, labels));
  }
  net.add("loss", Add{}, losses);
  return ModelGraph::make(std::move(name), SampleUnit::image, {3, 300, 300}, net.take());
}

Expected<ModelGraph> make_retinanet(std::string name, const RetinaNetShape& shape) {
  constexpr std::int64_t kAnchors = 9, kBox = 4;
  LayerList net(layers_of(shape.backbone));
  net.set_group("stem");
  const LayerId image = net.add("input", InputLayer{}, std::vector<LayerId>{});
  const auto stages = resnet_stages(net, shape.backbone, image, {.frozen_stages = 1});
  auto levels = pyramid(net, std::span(stages).subspan(1));
  const Conv2d down = biased(square(kPyramid, kPyramid, 3, 2));
  levels.push_back(net.add("fpn.extra_blocks.p6", down, levels.back()));
  const LayerId p6 = net.add("fpn.extra_blocks.p6.relu", Activation{}, levels.back());
  levels.push_back(net.add("fpn.extra_blocks.p7", down, p6));

  std::vector<LayerId> losses;
  const auto head = [&](const std::string& what, const std::string& last, std::int64_t out,
                        const LayerOp& loss) {
    net.set_group(what);
    SharedConvs convs(net, what);
    for (std::size_t l = 0; l < levels.size(); ++l) {
      LayerId x = levels[l];
      for (int i = 0; i < 4; ++i) {
        const std::string conv = fmt::format("conv.{}", 2 * i);
        x = convs(conv, biased(square(kPyramid, kPyramid, 3, 1)), x, l);
        x = convs.relu(conv, x, l);
      }
      x = convs(last, biased(square(kPyramid, kAnchors * out, 3, 1)), x, l);
      losses.push_back(convs.loss(last, loss, x, l));
    }
  };
  head("head.classification_head", "cls_logits", shape.classes, SigmoidCrossEntropy{});
  head("head.regression_head", "bbox_reg", kBox, MeanSquaredError{});
  net.add("loss", Add{}, losses);
  return ModelGraph::make(std::move(name), SampleUnit::image, {3, shape.height, shape.width},
                          net.take());
}

Expected<ModelGraph> make_mask_rcnn(std::string name, const MaskRcnnShape& shape) {
  constexpr std::int64_t kAnchors = 3, kBox = 4, kBoxSide = 7, kMaskSide = 14, kHidden = 1024;
  LayerList net(layers_of(shape.backbone));
  net.set_group("stem");
  const LayerId image = net.add("input", InputLayer{}, std::vector<LayerId>{});
  const auto stages = resnet_stages(net, shape.backbone, image, {.frozen_stages = 1});
  const auto levels = pyramid(net, stages);
  std::vector<LayerId> losses;

  net.set_group("rpn");
  auto proposed = levels;
  proposed.push_back(net.add("fpn.pool", Pool2d{.kernel = 1, .stride = 2}, levels.back()));
  SharedConvs rpn(net, "rpn.head");
  for (std::size_t l = 0; l < proposed.size(); ++l) {
    LayerId x = rpn("conv", biased(square(kPyramid, kPyramid, 3, 1)), proposed[l], l);
    x = rpn.relu("conv", x, l);
    const LayerId object = rpn("cls_logits", biased(square(kPyramid, kAnchors, 1, 1)), x, l);
    const LayerId box = rpn("bbox_pred", biased(square(kPyramid, kAnchors * kBox, 1, 1)), x, l);
    losses.push_back(rpn.loss("cls_logits", SigmoidCrossEntropy{}, object, l));
    losses.push_back(rpn.loss("bbox_pred", MeanSquaredError{}, box, l));
  }

  net.set_group("box_head");
  LayerId x = net.add("box_roi_pool", RoiAlign{shape.regions, kBoxSide}, levels);
  x = net.add("box_roi_pool.tokens", RegionTokens{shape.regions}, x);
  x = net.add("box_head.fc6", Linear{kPyramid * kBoxSide * kBoxSide, kHidden}, x);
  x = net.add("box_head.fc6.relu", Activation{}, x);
  x = net.add("box_head.fc7", Linear{kHidden, kHidden}, x);
  x = net.add("box_head.fc7.relu", Activation{}, x);
  const LayerId label = net.add("box_predictor.cls_score", Linear{kHidden, shape.classes}, x);
  const LayerId box = net.add("box_predictor.bbox_pred", Linear{kHidden, kBox * shape.classes}, x);
  losses.push_back(net.add("box_predictor.cls_loss", SoftmaxCrossEntropy{shape.classes}, label));
  losses.push_back(net.add("box_predictor.bbox_loss", MeanSquaredError{}, box));

  net.set_group("mask_head");
  x = net.add("mask_roi_pool", RoiAlign{shape.positive, kMaskSide}, levels);
  for (int i = 0; i < 4; ++i) {
    const std::string conv = fmt::format("mask_head.{}", i);
    x = net.add(conv, biased(square(kPyramid, kPyramid, 3, 1)), x);
    x = net.add(conv + ".relu", Activation{}, x);
  }
  x = net.add("mask_predictor.conv5_mask", TransposedConv{kPyramid, kPyramid}, x);
  x = net.add("mask_predictor.relu", Activation{}, x);
  x = net.add("mask_predictor.mask_fcn_logits", biased(square(kPyramid, shape.classes, 1, 1)), x);
  x = net.add("mask_predictor.flat", Flatten{}, x);
  losses.push_back(net.add("mask_predictor.loss", SigmoidCrossEntropy{}, x));
  net.add("loss", Add{}, losses);
  return ModelGraph::make(std::move(name), SampleUnit::image, {3, shape.height, shape.width},
                          net.take());
}

}  // namespace reckon
