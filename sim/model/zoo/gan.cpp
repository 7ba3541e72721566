#include <fmt/format.h>

#include "sim/model/zoo/diffusion.h"
#include "sim/model/zoo/vision/convolutions.h"

namespace reckon {
namespace {

constexpr std::int64_t kNoise = 128, kGenerator = 256, kDiscriminator = 128, kGanSide = 4;

Conv2d biased_conv(std::int64_t in, std::int64_t out, std::int64_t kernel) {
  Conv2d op = square(in, out, kernel, 1);
  op.bias = true;
  return op;
}

class Gan {
 public:
  Gan() : net_(256) {}

  Expected<ModelGraph> build() {
    const LayerId real = net_.add("real", InputLayer{}, std::vector<LayerId>{});
    // Those that the generator made, without a way back to it.
    const LayerId detached = net_.add("fake.detached", InputLayer{}, std::vector<LayerId>{});
    const LayerId told_real = discriminate("real", real);
    const LayerId told_fake = discriminate("fake", detached);
    const LayerId fooled = discriminate("generator", generate());
    net_.add("loss", Add{}, {told_real, told_fake, fooled});
    return ModelGraph::make("sngan_cifar10", SampleUnit::image, {3, 8 * kGanSide, 8 * kGanSide},
                            net_.take());
  }

 private:
  LayerId norm_relu(const std::string& name, LayerId x) {
    x = net_.add(name + ".bn", BatchNorm{kGenerator}, x);
    return net_.add(name + ".relu", Activation{}, x);
  }

  LayerId generate() {
    net_.set_group("generator");
    LayerId x = net_.add("noise", ExtraInput{1, kNoise}, std::vector<LayerId>{});
    x = net_.add("gen.l1", Linear{kNoise, kGanSide * kGanSide * kGenerator}, x);
    x = net_.add("gen.points", RegroupTokens{.join = 1, .split = kGanSide * kGanSide}, x);
    x = net_.add("gen.image", ImageTokens{}, x);
    for (int i = 2; i <= 4; ++i) {
      const std::string name = fmt::format("gen.block{}", i);
      LayerId y = net_.add(name + ".up", Upsample{2}, norm_relu(name + ".1", x));
      y = net_.add(name + ".c1", biased_conv(kGenerator, kGenerator, 3), y);
      y = net_.add(name + ".c2", biased_conv(kGenerator, kGenerator, 3), norm_relu(name + ".2", y));
      x = net_.add(name + ".c_sc.up", Upsample{2}, x);
      x = net_.add(name + ".c_sc", biased_conv(kGenerator, kGenerator, 1), x);
      x = net_.add(name + ".add", Add{}, {y, x});
    }
    x = net_.add("gen.l5", biased_conv(kGenerator, 3, 3), norm_relu("gen.l5", x));
    return net_.add("gen.tanh", Activation{ActivationKind::tanh}, x);
  }

  /// The first time makes the weights, the others share them.
  LayerId discriminate(const std::string& of, LayerId image) {
    net_.set_group("discriminator." + of);
    of_ = of;
    next_ = 0;
    Features x = block("dis.block1", {image, 3}, true);
    x = block("dis.block2", x, true);
    x = block("dis.block3", x, false);
    x = block("dis.block4", x, false);
    LayerId y = relu("dis.out", x.layer);
    y = net_.add(named("dis.pool"), GlobalAveragePool{}, y);
    y = weighted("dis.l5", Linear{kDiscriminator, 1, false}, y);
    return net_.add(named("loss"), SigmoidCrossEntropy{}, y);
  }

  /// blocks.py of the reference: OptimizedBlock (the first) and Block.
  Features block(const std::string& name, Features in, bool down) {
    const std::int64_t width = kDiscriminator;
    const bool first = in.channels != width;
    LayerId y = first ? in.layer : relu(name + ".1", in.layer);
    y = weighted(name + ".c1", biased_conv(in.channels, width, 3), y);
    y = weighted(name + ".c2", biased_conv(width, width, 3), relu(name + ".2", y));
    LayerId x = in.layer;
    if (first)
      x = weighted(name + ".c_sc", biased_conv(in.channels, width, 1), halve(name + ".c_sc", x));
    if (down) {
      y = halve(name, y);
      if (!first) {
        x = weighted(name + ".c_sc", biased_conv(width, width, 1), x);
        x = halve(name + ".c_sc", x);
      }
    }
    return {net_.add(named(name + ".add"), Add{}, {y, x}), width};
  }

  std::string named(const std::string& name) const { return fmt::format("{}.{}", of_, name); }
  LayerId relu(const std::string& name, LayerId x) {
    return net_.add(named(name + ".relu"), Activation{}, x);
  }
  LayerId halve(const std::string& name, LayerId x) {
    return net_.add(named(name + ".pool"), Pool2d{.kind = PoolKind::average}, x);
  }
  LayerId weighted(const std::string& name, const LayerOp& op, LayerId x) {
    if (next_ < owners_.size()) return net_.add_tied(named(name), op, x, owners_[next_++]);
    owners_.push_back(net_.add(named(name), op, x));
    ++next_;
    return owners_.back();
  }

  LayerList net_;
  std::string of_;
  std::vector<LayerId> owners_;
  std::size_t next_ = 0;
};

}  // namespace

Expected<ModelGraph> make_sngan_cifar10() { return Gan().build(); }

}  // namespace reckon
