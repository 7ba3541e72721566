#include "sim/model/zoo/vision/convolutions.h"
#include "sim/model/zoo/vision/images.h"

// Inception v3: torchvision/models/inception.py, block by block.
namespace reckon {
namespace {

constexpr std::int64_t kClasses = 1000;
constexpr Pool2d kHalve{PoolKind::max, 3, 2, 0};
constexpr Pool2d kSmooth{PoolKind::average, 3, 1, 1};

Conv2d kernel(std::int64_t in, std::int64_t out, std::int64_t h, std::int64_t w,
              std::int64_t stride = 1) {
  const bool padded = stride == 1;  // those that halve the image have no padding
  return {.in = in,
          .out = out,
          .kernel_h = h,
          .kernel_w = w,
          .stride = stride,
          .padding = padded ? h / 2 : 0,
          .padding_w = padded ? w / 2 : 0};
}

class InceptionBuilder {
 public:
  std::vector<Layer> build() {
    const LayerId image = net_.add("input", InputLayer{}, std::vector<LayerId>{});
    LayerId x = stem(image);
    x = mixed_a("Mixed_5b", 192, 32, x);
    x = mixed_a("Mixed_5c", 256, 64, x);
    x = mixed_a("Mixed_5d", 288, 64, x);
    x = mixed_b("Mixed_6a", 288, x);
    x = mixed_c("Mixed_6b", 128, x);
    x = mixed_c("Mixed_6c", 160, x);
    x = mixed_c("Mixed_6d", 160, x);
    x = mixed_c("Mixed_6e", 192, x);
    const LayerId auxiliary = auxiliary_loss(x);
    x = mixed_d("Mixed_7a", x);
    x = mixed_e("Mixed_7b", 1280, x);
    x = mixed_e("Mixed_7c", 2048, x);
    net_.set_group("head");
    x = net_.add("avgpool", GlobalAveragePool{}, x);
    x = net_.add("dropout", Dropout{0.5}, x);
    x = net_.add("fc", Linear{2048, kClasses}, x);
    const LayerId main = net_.add("fc.loss", SoftmaxCrossEntropy{kClasses}, x);
    net_.add("loss", Add{}, {main, auxiliary});
    return net_.take();
  }

 private:
  void begin(const std::string& name) {
    block_ = name + ".";
    net_.set_group(name);
  }
  /// BasicConv2d: convolution, norm, ReLU.
  LayerId conv(const std::string& name, const Conv2d& op, LayerId x) {
    const std::string prefix = block_ + name;
    x = conv_bn(net_, prefix + ".conv", prefix + ".bn", op, x);
    return net_.add(prefix + ".relu", Activation{}, x);
  }
  LayerId pool(const std::string& name, const Pool2d& op, LayerId x) {
    return net_.add(block_ + name, op, x);
  }
  LayerId concat(const std::string& name, std::vector<LayerId> branches) {
    return net_.add(block_ + name, Concat{}, std::move(branches));
  }

  LayerId stem(LayerId x) {
    net_.set_group("stem");
    x = conv("Conv2d_1a_3x3", kernel(3, 32, 3, 3, 2), x);
    Conv2d unpadded = kernel(32, 32, 3, 3);
    unpadded.padding = 0;
    unpadded.padding_w = 0;
    x = conv("Conv2d_2a_3x3", unpadded, x);
    x = conv("Conv2d_2b_3x3", kernel(32, 64, 3, 3), x);
    x = pool("maxpool1", kHalve, x);
    x = conv("Conv2d_3b_1x1", kernel(64, 80, 1, 1), x);
    unpadded.in = 80;
    unpadded.out = 192;
    x = conv("Conv2d_4a_3x3", unpadded, x);
    return pool("maxpool2", kHalve, x);
  }

  LayerId mixed_a(const std::string& name, std::int64_t in, std::int64_t pooled, LayerId x) {
    begin(name);
    const LayerId one = conv("branch1x1", kernel(in, 64, 1, 1), x);
    LayerId five = conv("branch5x5_1", kernel(in, 48, 1, 1), x);
    five = conv("branch5x5_2", kernel(48, 64, 5, 5), five);
    LayerId three = conv("branch3x3dbl_1", kernel(in, 64, 1, 1), x);
    three = conv("branch3x3dbl_2", kernel(64, 96, 3, 3), three);
    three = conv("branch3x3dbl_3", kernel(96, 96, 3, 3), three);
    const LayerId smooth = pool("avg_pool", kSmooth, x);
    return concat("cat", {one, five, three, conv("branch_pool", kernel(in, pooled, 1, 1), smooth)});
  }

  LayerId mixed_b(const std::string& name, std::int64_t in, LayerId x) {
    begin(name);
    const LayerId three = conv("branch3x3", kernel(in, 384, 3, 3, 2), x);
    LayerId twice = conv("branch3x3dbl_1", kernel(in, 64, 1, 1), x);
    twice = conv("branch3x3dbl_2", kernel(64, 96, 3, 3), twice);
    twice = conv("branch3x3dbl_3", kernel(96, 96, 3, 3, 2), twice);
    return concat("cat", {three, twice, pool("max_pool", kHalve, x)});
  }

  LayerId mixed_c(const std::string& name, std::int64_t width, LayerId x) {
    begin(name);
    const LayerId one = conv("branch1x1", kernel(768, 192, 1, 1), x);
    LayerId seven = conv("branch7x7_1", kernel(768, width, 1, 1), x);
    seven = conv("branch7x7_2", kernel(width, width, 1, 7), seven);
    seven = conv("branch7x7_3", kernel(width, 192, 7, 1), seven);
    LayerId twice = conv("branch7x7dbl_1", kernel(768, width, 1, 1), x);
    twice = conv("branch7x7dbl_2", kernel(width, width, 7, 1), twice);
    twice = conv("branch7x7dbl_3", kernel(width, width, 1, 7), twice);
    twice = conv("branch7x7dbl_4", kernel(width, width, 7, 1), twice);
    twice = conv("branch7x7dbl_5", kernel(width, 192, 1, 7), twice);
    const LayerId smooth = pool("avg_pool", kSmooth, x);
    return concat("cat", {one, seven, twice, conv("branch_pool", kernel(768, 192, 1, 1), smooth)});
  }

  LayerId mixed_d(const std::string& name, LayerId x) {
    begin(name);
    LayerId three = conv("branch3x3_1", kernel(768, 192, 1, 1), x);
    three = conv("branch3x3_2", kernel(192, 320, 3, 3, 2), three);
    LayerId seven = conv("branch7x7x3_1", kernel(768, 192, 1, 1), x);
    seven = conv("branch7x7x3_2", kernel(192, 192, 1, 7), seven);
    seven = conv("branch7x7x3_3", kernel(192, 192, 7, 1), seven);
    seven = conv("branch7x7x3_4", kernel(192, 192, 3, 3, 2), seven);
    return concat("cat", {three, seven, pool("max_pool", kHalve, x)});
  }

  LayerId mixed_e(const std::string& name, std::int64_t in, LayerId x) {
    begin(name);
    const LayerId one = conv("branch1x1", kernel(in, 320, 1, 1), x);
    LayerId three = conv("branch3x3_1", kernel(in, 384, 1, 1), x);
    three = concat("branch3x3_2", {conv("branch3x3_2a", kernel(384, 384, 1, 3), three),
                                   conv("branch3x3_2b", kernel(384, 384, 3, 1), three)});
    LayerId twice = conv("branch3x3dbl_1", kernel(in, 448, 1, 1), x);
    twice = conv("branch3x3dbl_2", kernel(448, 384, 3, 3), twice);
    twice = concat("branch3x3dbl_3", {conv("branch3x3dbl_3a", kernel(384, 384, 1, 3), twice),
                                      conv("branch3x3dbl_3b", kernel(384, 384, 3, 1), twice)});
    const LayerId smooth = pool("avg_pool", kSmooth, x);
    return concat("cat", {one, three, twice, conv("branch_pool", kernel(in, 192, 1, 1), smooth)});
  }

  LayerId auxiliary_loss(LayerId x) {
    begin("AuxLogits");
    x = pool("avg_pool", Pool2d{PoolKind::average, 5, 3, 0}, x);
    x = conv("conv0", kernel(768, 128, 1, 1), x);
    Conv2d whole = kernel(128, 768, 5, 5);
    whole.padding = 0;
    whole.padding_w = 0;
    x = conv("conv1", whole, x);
    x = net_.add("AuxLogits.pool", GlobalAveragePool{}, x);
    x = net_.add("AuxLogits.fc", Linear{768, kClasses}, x);
    x = net_.add("AuxLogits.loss", SoftmaxCrossEntropy{kClasses}, x);
    return net_.add("AuxLogits.loss.scale", ScaleBy{0.4}, x);
  }

  LayerList net_{384};
  std::string block_;
};

}  // namespace

Expected<ModelGraph> make_inception_v3() {
  return ModelGraph::make("inception_v3", SampleUnit::image, {3, 299, 299},
                          InceptionBuilder().build());
}

}  // namespace reckon
