#include <fmt/format.h>

#include <array>
#include <map>

#include "sim/model/zoo/vision/detection.h"
#include "sim/model/zoo/vision/efficientnet.h"

namespace reckon {
namespace {

constexpr std::size_t kLevels = 5;
constexpr std::int64_t kDetAnchors = 9, kDetClasses = 90, kDetBox = 4;
using Levels = std::array<LayerId, kLevels>;

class EfficientDetBuilder {
 public:
  explicit EfficientDetBuilder(const EfficientDetShape& shape) : shape_(shape), net_(1024) {}

  std::vector<Layer> build() {
    const LayerId image = net_.add("input", InputLayer{}, std::vector<LayerId>{});
    const auto stages = efficientnet_stages(net_, shape_.backbone, image);
    // Strides 8, 16 and 32: behind the third, the fifth and the seventh stage of blocks.
    const std::array<Features, 3> maps{stages[3], stages[5], stages[7]};
    net_.set_group("fpn.inputs");
    Levels levels{resampled("fpn.p3", maps[0]), resampled("fpn.p4", maps[1]),
                  resampled("fpn.p5", maps[2])};
    levels[3] = smaller("fpn.p6", resampled("fpn.p6", maps[2]));
    levels[4] = smaller("fpn.p7", levels[3]);
    // The first cell takes levels 4 and 5 twice, each time by a 1x1 of its own.
    Levels again = levels;
    again[1] = resampled("fpn.p4_again", maps[1]);
    again[2] = resampled("fpn.p5_again", maps[2]);
    for (int i = 0; i < shape_.cells; ++i) {
      levels = cell(fmt::format("fpn.cell.{}", i), levels, again);
      again = levels;
    }
    std::vector<LayerId> losses;
    head("class_net", kDetClasses, SigmoidCrossEntropy{}, levels, losses);
    head("box_net", kDetBox, MeanSquaredError{}, levels, losses);
    net_.add("loss", Add{}, losses);
    return net_.take();
  }

 private:
  LayerId resampled(const std::string& name, const Features& map) {
    Conv2d conv = square(map.channels, shape_.width, 1, 1);
    conv.bias = true;
    return conv_bn(net_, name + ".conv", name + ".bn", conv, map.layer);
  }
  LayerId smaller(const std::string& name, LayerId x) {
    return net_.add(name + ".down", Pool2d{PoolKind::max, 3, 2, 1}, x);
  }
  LayerId larger(const std::string& name, LayerId x) {
    return net_.add(name + ".up", Upsample{2}, x);
  }

  /// Their sum, each with a learned weight, then SiLU and a separable convolution.
  LayerId combined(const std::string& name, std::size_t level, const std::vector<LayerId>& maps) {
    const std::int64_t side = shape_.resolution >> (level + 3);
    const Operator sum{.output = {shape_.width, side, side},
                       .parameters = static_cast<std::int64_t>(maps.size())};
    LayerId x = net_.add(name + ".combine", sum, maps);
    x = net_.add(name + ".act", Activation{ActivationKind::silu}, x);
    Conv2d depthwise = square(shape_.width, shape_.width, 3, 1);
    depthwise.groups = shape_.width;
    x = net_.add(name + ".conv_dw", depthwise, x);
    Conv2d point = square(shape_.width, shape_.width, 1, 1);
    point.bias = true;
    return conv_bn(net_, name + ".conv_pw", name + ".bn", point, x);
  }

  Levels cell(const std::string& name, const Levels& in, const Levels& again) {
    net_.set_group(name);
    Levels down = in, out = in;
    for (std::size_t l = kLevels - 1; l-- > 0;) {
      const std::string node = fmt::format("{}.down.{}", name, l + 3);
      down[l] = combined(node, l, {in[l], larger(node, down[l + 1])});
    }
    out[0] = down[0];
    for (std::size_t l = 1; l < kLevels; ++l) {
      const std::string node = fmt::format("{}.up.{}", name, l + 3);
      std::vector<LayerId> maps{again[l]};
      if (l + 1 < kLevels) maps.push_back(down[l]);
      maps.push_back(smaller(node, out[l - 1]));
      out[l] = combined(node, l, maps);
    }
    return out;
  }

  LayerId shared(const std::string& name, std::size_t level, const Conv2d& op, LayerId x) {
    const std::string own = fmt::format("{}.{}", name, level);
    const auto owner = owners_.find(name);
    if (owner != owners_.end()) return net_.add_tied(own, op, x, owner->second);
    return owners_.emplace(name, net_.add(own, op, x)).first->second;
  }
  LayerId separable(const std::string& name, std::size_t level, std::int64_t out, LayerId x) {
    Conv2d depthwise = square(shape_.width, shape_.width, 3, 1);
    depthwise.groups = shape_.width;
    Conv2d point = square(shape_.width, out, 1, 1);
    point.bias = true;
    return shared(name + ".conv_pw", level, point, shared(name + ".conv_dw", level, depthwise, x));
  }
  void head(const std::string& name, std::int64_t out, const LayerOp& loss, const Levels& levels,
            std::vector<LayerId>& losses) {
    net_.set_group(name);
    for (std::size_t l = 0; l < kLevels; ++l) {
      LayerId x = levels[l];
      for (int i = 0; i < shape_.repeats; ++i) {
        const std::string repeat = fmt::format("{}.conv_rep.{}", name, i);
        x = separable(repeat, l, shape_.width, x);
        x = net_.add(fmt::format("{}.bn.{}", repeat, l), BatchNorm{shape_.width}, x);
        x = net_.add(fmt::format("{}.act.{}", repeat, l), Activation{ActivationKind::silu}, x);
      }
      x = separable(name + ".predict", l, kDetAnchors * out, x);
      x = net_.add(fmt::format("{}.flat.{}", name, l), Flatten{}, x);
      losses.push_back(net_.add(fmt::format("{}.loss.{}", name, l), loss, x));
    }
  }

  const EfficientDetShape& shape_;
  LayerList net_;
  std::map<std::string, LayerId> owners_;
};

}  // namespace

Expected<ModelGraph> make_efficientdet(std::string name, const EfficientDetShape& shape) {
  return ModelGraph::make(std::move(name), SampleUnit::image,
                          {3, shape.resolution, shape.resolution},
                          EfficientDetBuilder(shape).build());
}

}  // namespace reckon
