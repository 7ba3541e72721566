#include <fmt/format.h>

#include <array>

#include "sim/model/zoo/vision/convolutions.h"
#include "sim/model/zoo/vision/detection.h"

namespace reckon {
namespace {

class Darknet {
 public:
  explicit Darknet(LayerList& net) : net_(net) {}

  /// Convolution, batch norm, leaky ReLU.
  Features conv(Features x, std::int64_t out, std::int64_t kernel, std::int64_t stride = 1) {
    const std::string name = fmt::format("conv{}", ++convs_);
    const LayerId y =
        conv_bn(net_, name, name + ".bn", square(x.channels, out, kernel, stride), x.layer);
    return {net_.add(name + ".leaky", Activation{}, y), out};
  }
  Features residual(Features x) {
    const Features y = conv(conv(x, x.channels / 2, 1), x.channels, 3);
    return {net_.add(fmt::format("conv{}.add", convs_), Add{}, {x.layer, y.layer}), x.channels};
  }
  /// Five convolutions; the narrow ones have `width` channels.
  Features neck(Features x, std::int64_t width) {
    for (int i = 0; i < 2; ++i) x = conv(conv(x, width, 1), 2 * width, 3);
    return conv(x, width, 1);
  }
  LayerId predict(Features x, std::int64_t width, std::int64_t outputs) {
    x = conv(x, 2 * width, 3);
    const std::string name = fmt::format("yolo{}", ++heads_);
    Conv2d last = square(x.channels, outputs, 1, 1);
    last.bias = true;
    const LayerId y = net_.add(name + ".flat", Flatten{}, net_.add(name, last, x.layer));
    return net_.add(name + ".loss", SigmoidCrossEntropy{}, y);
  }
  /// Half as many channels at twice the size, beside `finer`.
  Features up(Features x, Features finer) {
    x = conv(x, x.channels / 2, 1);
    const std::string name = fmt::format("route{}", heads_);
    const LayerId larger = net_.add(name + ".upsample", Upsample{2}, x.layer);
    return {net_.add(name, Concat{}, {larger, finer.layer}), x.channels + finer.channels};
  }

 private:
  LayerList& net_;
  int convs_ = 0, heads_ = 0;
};

}  // namespace

Expected<ModelGraph> make_yolov3() {
  constexpr std::array<int, 5> kBlocks{1, 2, 8, 8, 4};
  constexpr std::int64_t kSide = 416, kOutputs = 3 * (80 + 5);
  LayerList net(260);
  Darknet darknet(net);
  net.set_group("stem");
  Features x{net.add("input", InputLayer{}, std::vector<LayerId>{}), 3};
  x = darknet.conv(x, 32, 3);
  std::vector<Features> stages;
  for (std::size_t stage = 0; stage < kBlocks.size(); ++stage) {
    net.set_group(fmt::format("stage{}", stage + 1));
    x = darknet.conv(x, 2 * x.channels, 3, 2);
    for (int block = 0; block < kBlocks[stage]; ++block) x = darknet.residual(x);
    stages.push_back(x);
  }
  std::vector<LayerId> losses;
  for (std::size_t head = 0; head < 3; ++head) {
    net.set_group(fmt::format("head{}", head + 1));
    const std::int64_t width = std::int64_t{512} >> head;
    x = darknet.neck(x, width);
    losses.push_back(darknet.predict(x, width, kOutputs));
    if (head < 2) x = darknet.up(x, stages[3 - head]);
  }
  net.add("loss", Add{}, losses);
  return ModelGraph::make("yolov3", SampleUnit::image, {3, kSide, kSide}, net.take());
}

}  // namespace reckon
