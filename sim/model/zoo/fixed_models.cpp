#include "sim/model/zoo/fixed_models.h"

#include <array>

#include "sim/model/blocks/networks.h"
#include "sim/model/zoo/diffusion.h"
#include "sim/model/zoo/records.h"
#include "sim/model/zoo/sampled_graphs.h"
#include "sim/model/zoo/vision/cifar.h"
#include "sim/model/zoo/vision/detection.h"
#include "sim/model/zoo/vision/images.h"
#include "sim/model/zoo/zoo.h"

namespace reckon {
namespace {

// Blocks a stage: [He 2016, table 1].
constexpr std::array kFixedModels{
    FixedModel{"resnet18",
               [] {
                 return make_resnet("resnet18", {{2, 2, 2, 2}});
               }},
    FixedModel{"resnet34",
               [] {
                 return make_resnet("resnet34", {{3, 4, 6, 3}});
               }},
    FixedModel{"resnet50",
               [] {
                 return make_resnet("resnet50", {{3, 4, 6, 3}, true, false});
               }},
    FixedModel{"resnet50_v1_5",
               [] {
                 return make_resnet("resnet50_v1_5", {{3, 4, 6, 3}, true, true});
               }},
    FixedModel{"resnet101",
               [] {
                 return make_resnet("resnet101", {{3, 4, 23, 3}, true, false});
               }},
    FixedModel{"resnet101_v1_5",
               [] {
                 return make_resnet("resnet101_v1_5", {{3, 4, 23, 3}, true, true});
               }},
    FixedModel{"resnet152",
               [] {
                 return make_resnet("resnet152", {{3, 8, 36, 3}, true, false});
               }},
    FixedModel{"resnet152_v1_5",
               [] {
                 return make_resnet("resnet152_v1_5", {{3, 8, 36, 3}, true, true});
               }},
    FixedModel{"resnet18_cifar10",
               [] {
                 ResNetShape shape{{2, 2, 2, 2}};
                 shape.small_images = true;
                 shape.classes = 10;
                 return make_resnet("resnet18_cifar10", shape);
               }},
    FixedModel{"resnet164_cifar10",
               [] {
                 return make_deep_cifar_resnet("resnet164_cifar10", {18, true});
               }},
    FixedModel{"resnet164_basic_cifar10",
               [] {
                 return make_deep_cifar_resnet("resnet164_basic_cifar10", {27, false});
               }},
    FixedModel{"resnet9_cifar10", [] { return make_resnet9_cifar10(); }},
    FixedModel{"resnext50_32x4d",
               [] {
                 return make_resnet("resnext50_32x4d", {{3, 4, 6, 3}, true, true, 32, 4});
               }},
    FixedModel{"resnext101_32x4d",
               [] {
                 return make_resnet("resnext101_32x4d", {{3, 4, 23, 3}, true, true, 32, 4});
               }},
    FixedModel{"se_resnext101_32x4d",
               [] {
                 ResNetShape shape{{3, 4, 23, 3}, true, true, 32, 4};
                 shape.squeeze = 16;
                 return make_resnet("se_resnext101_32x4d", shape);
               }},
    FixedModel{"wide_resnet50_2",
               [] {
                 return make_resnet("wide_resnet50_2", {{3, 4, 6, 3}, true, true, 1, 128});
               }},
    FixedModel{"ssd300_resnet34",
               [] {
                 return make_ssd300("ssd300_resnet34", {{{3, 4, 6, 3}}, false});
               }},
    FixedModel{"ssd300_resnet50",
               [] {
                 return make_ssd300("ssd300_resnet50", {{{3, 4, 6, 3}, true, true}, true});
               }},
    FixedModel{"retinanet",
               [] {
                 return make_retinanet("retinanet", {{{3, 4, 6, 3}, true, true}, 91});
               }},
    FixedModel{
        "retinanet_mlperf",
        [] {
          return make_retinanet("retinanet_mlperf", {{{3, 4, 6, 3}, true, true, 32, 4}, 264});
        }},
    FixedModel{"mask_rcnn",
               [] {
                 return make_mask_rcnn("mask_rcnn", {{{3, 4, 6, 3}, true, true}, 91});
               }},
    FixedModel{"mask_rcnn_mlperf",
               [] {
                 return make_mask_rcnn("mask_rcnn_mlperf", {{{3, 4, 6, 3}, true, false}, 81});
               }},
    FixedModel{"efficientdet_d0", [] { return make_efficientdet("efficientdet_d0", {}); }},
    FixedModel{"unet3d_kits19",
               [] {
                 return make_unet3d("unet3d_kits19", {1, 3, 1});
               }},
    FixedModel{"unet3d_brats",
               [] {
                 return make_unet3d("unet3d_brats", {4, 4, 3});
               }},
    FixedModel{"nnunet_3d",
               [] {
                 return make_unet3d("nnunet_3d", {4, 4, 1});
               }},
    FixedModel{"nnunet_2d", [] { return make_nnunet_2d(); }},
    FixedModel{"vnet", [] { return make_vnet(); }},
    FixedModel{"stable_diffusion_v2", [] { return make_stable_diffusion_v2(); }},
    FixedModel{"sngan_cifar10", [] { return make_sngan_cifar10(); }},
    // [Peebles 2023, arXiv:2212.09748, table 1], latents of 32 x 32: images of 256 x 256.
    FixedModel{"dit_b_2",
               [] {
                 return make_network("dit_b_2", DiffusionTransformer{12, 768, 12});
               }},
    FixedModel{"dit_l_2",
               [] {
                 return make_network("dit_l_2", DiffusionTransformer{24, 1024, 16});
               }},
    FixedModel{"dit_xl_2",
               [] {
                 return make_network("dit_xl_2", DiffusionTransformer{28, 1152, 16});
               }},
    // mlcommons/training:text_to_image/torchtitan trains the architecture of FLUX.1-schnell on
    // images of 256 x 256: 256 tokens of latents, 256 of T5's.
    FixedModel{"flux_1_schnell_mlperf",
               [] {
                 FluxTransformer n;
                 n.text_tokens = 256;
                 return make_network("flux_1_schnell_mlperf", n, 256);
               }},
    FixedModel{"densenet121",
               [] {
                 return make_densenet("densenet121", {{6, 12, 24, 16}, 32});
               }},
    FixedModel{"densenet161",
               [] {
                 return make_densenet("densenet161", {{6, 12, 36, 24}, 48});
               }},
    FixedModel{"densenet201",
               [] {
                 return make_densenet("densenet201", {{6, 12, 48, 32}, 32});
               }},
    FixedModel{"convnext_tiny",
               [] {
                 return make_convnext("convnext_tiny", {{3, 3, 9, 3}, 96, 0.1});
               }},
    FixedModel{"convnext_small",
               [] {
                 return make_convnext("convnext_small", {{3, 3, 27, 3}, 96, 0.4});
               }},
    FixedModel{"convnext_base",
               [] {
                 return make_convnext("convnext_base", {{3, 3, 27, 3}, 128, 0.5});
               }},
    FixedModel{"convnext_large",
               [] {
                 return make_convnext("convnext_large", {{3, 3, 27, 3}, 192, 0.5});
               }},
    FixedModel{"mobilenet_v2", [] { return make_mobilenet_v2(); }},
    FixedModel{"vgg11",
               [] {
                 return make_vgg("vgg11", {1, 1, 2, 2, 2});
               }},
    FixedModel{"vgg16",
               [] {
                 return make_vgg("vgg16", {2, 2, 3, 3, 3});
               }},
    FixedModel{"vgg19",
               [] {
                 return make_vgg("vgg19", {2, 2, 4, 4, 4});
               }},
    FixedModel{"alexnet", [] { return make_alexnet(); }},
    FixedModel{"inception_v3", [] { return make_inception_v3(); }},
    // Width, depth, resolution and dropout: [Tan 2019, arXiv:1905.11946] and its
    // tensorflow/tpu:models/official/efficientnet/efficientnet_builder.py.
    FixedModel{"efficientnet_b0",
               [] {
                 return make_efficientnet("efficientnet_b0", {1.0, 1.0, 224, 0.2});
               }},
    FixedModel{"efficientnet_b1",
               [] {
                 return make_efficientnet("efficientnet_b1", {1.0, 1.1, 240, 0.2});
               }},
    FixedModel{"efficientnet_b2",
               [] {
                 return make_efficientnet("efficientnet_b2", {1.1, 1.2, 260, 0.3});
               }},
    FixedModel{"efficientnet_b3",
               [] {
                 return make_efficientnet("efficientnet_b3", {1.2, 1.4, 300, 0.3});
               }},
    FixedModel{"efficientnet_b4",
               [] {
                 return make_efficientnet("efficientnet_b4", {1.4, 1.8, 380, 0.4});
               }},
    FixedModel{"efficientnet_b5",
               [] {
                 return make_efficientnet("efficientnet_b5", {1.6, 2.2, 456, 0.4});
               }},
    FixedModel{"efficientnet_widese_b0",
               [] {
                 return make_efficientnet("efficientnet_widese_b0", {1.0, 1.0, 224, 0.2, true});
               }},
    FixedModel{"efficientnet_widese_b4",
               [] {
                 return make_efficientnet("efficientnet_widese_b4", {1.4, 1.8, 380, 0.4, true});
               }},
    // [Dosovitskiy 2021, arXiv:2010.11929, table 1].
    FixedModel{"vit_ti_16",
               [] {
                 return make_vision_transformer("vit_ti_16", {12, 192, 3, 768, 16});
               }},
    FixedModel{"vit_s_16",
               [] {
                 return make_vision_transformer("vit_s_16", {12, 384, 6, 1536, 16});
               }},
    FixedModel{"vit_b_16",
               [] {
                 return make_vision_transformer("vit_b_16", {12, 768, 12, 3072, 16});
               }},
    FixedModel{"vit_b_32",
               [] {
                 return make_vision_transformer("vit_b_32", {12, 768, 12, 3072, 32});
               }},
    FixedModel{"vit_l_16",
               [] {
                 return make_vision_transformer("vit_l_16", {24, 1024, 16, 4096, 16});
               }},
    FixedModel{"vit_l_32",
               [] {
                 return make_vision_transformer("vit_l_32", {24, 1024, 16, 4096, 32});
               }},
    FixedModel{"vit_h_14",
               [] {
                 return make_vision_transformer("vit_h_14", {32, 1280, 16, 5120, 14});
               }},
    FixedModel{"alphago_zero_20", [] { return make_alphago_zero("alphago_zero_20", 20); }},
    FixedModel{"alphago_zero_40", [] { return make_alphago_zero("alphago_zero_40", 40); }},
    FixedModel{"dlrm_mlperf", [] { return make_dlrm_mlperf(); }},
    FixedModel{"dlrm_dcnv2_mlperf", [] { return make_dlrm_dcnv2_mlperf(); }},
    FixedModel{"rgat_mlperf", [] { return make_rgat_mlperf(); }},
    FixedModel{"ncf", [] { return make_ncf(); }},
    FixedModel{"ncf_ml1m", [] { return make_ncf_ml1m(); }},
    FixedModel{"wide_and_deep", [] { return make_wide_and_deep(); }},
    FixedModel{"vae_cf", [] { return make_vae_cf(); }},
    FixedModel{"yolov3", [] { return make_yolov3(); }},
    FixedModel{"mlp_boston_housing", [] { return make_boston_housing_mlp(); }},
    FixedModel{"mlp_mnist", [] { return make_mnist_mlp(); }}};

}  // namespace

std::span<const FixedModel> fixed_models() { return kFixedModels; }

}  // namespace reckon
