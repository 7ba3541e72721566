#pragma once
#include <string>

#include "sim/model/zoo/vision/images.h"

// Detectors and segmentation. Not modelled of their losses: matching of anchors, hard negative
// mining, non-maximum suppression; a smooth L1 counts as a squared error, a focal loss as a sigmoid
// cross-entropy.
namespace reckon {

/// [Liu 2016, arXiv:1512.02325] of 300 x 300 pixels on a ResNet up to its third stage, of stride 1:
/// 38 x 38 points. Reference: mlcommons/training:retired_benchmarks/ssd-v1/ssd/ssd300.py
/// (ResNet-34) and NVIDIA/DeepLearningExamples:PyTorch/Detection/SSD/ssd/model.py (ResNet-50),
/// whose additional layers are narrower and have batch norms.
struct Ssd300Shape {
  ResNetShape backbone;
  bool narrow_with_norms = false;
};
Expected<ModelGraph> make_ssd300(std::string name, const Ssd300Shape& shape);

/// [Lin 2017, arXiv:1708.02002]: torchvision/models/detection/retinanet.py, retinanet_resnet50_fpn:
/// pyramid levels 3 to 7, nine anchors, heads that all levels share. The stem and the first stage
/// are frozen, and all of the backbone's batch norms. MLPerf's [mlcommons/training:
/// retired_benchmarks/retinanet] is on a ResNeXt-50 32x4d, 264 classes of OpenImages, 800 x 800.
struct RetinaNetShape {
  ResNetShape backbone;
  std::int64_t classes = 91;
  std::int64_t height = 800, width = 800;
};
Expected<ModelGraph> make_retinanet(std::string name, const RetinaNetShape& shape);

/// [He 2017, arXiv:1703.06870] with a feature pyramid: torchvision/models/detection/mask_rcnn.py
/// and mlcommons/training:retired_benchmarks/maskrcnn (configs/e2e_mask_rcnn_R_50_FPN_1x.yaml).
/// 512 regions an image go through the box head, the quarter of them that may be positive through
/// the mask head. COCO's images are mostly 640 x 480: 1,088 x 800 once scaled to a side of 800 and
/// padded to a multiple of 32.
struct MaskRcnnShape {
  ResNetShape backbone;
  std::int64_t classes = 91;
  std::int64_t height = 800, width = 1088;
  std::int64_t regions = 512, positive = 128;
};
Expected<ModelGraph> make_mask_rcnn(std::string name, const MaskRcnnShape& shape);

/// EfficientDet [Tan 2020, arXiv:1911.09070, section 4 and table 1] on an EfficientNet, five levels
/// from stride 8 on, nine anchors, 90 classes;
/// rwightman/efficientdet-pytorch:effdet/efficientdet.py as its tf_ models are built: a bias in
/// each 1x1, sums with learned weights (one number an input), heads that the levels share but for
/// their batch norms.
struct EfficientDetShape {
  EfficientNetShape backbone;
  std::int64_t width = 64;  // channels of the pyramid
  int cells = 3, repeats = 3;
  std::int64_t resolution = 512;
};
Expected<ModelGraph> make_efficientdet(std::string name, const EfficientDetShape& shape);

/// YOLOv3 [Redmon 2018, arXiv:1804.02767] on Darknet-53 (table 1 there), 416 x 416, 80 classes;
/// pjreddie/darknet:cfg/yolov3.cfg. Its leaky ReLU counts as a ReLU, its loss as a sigmoid
/// cross-entropy over all that is predicted.
Expected<ModelGraph> make_yolov3();

/// 3D U-Net [Cicek 2016, arXiv:1606.06650] as MLPerf trained it on KiTS19:
/// mlcommons/training:retired_benchmarks/unet3d/pytorch/model: one channel, 3 classes, patches of
/// 128^3, 32 to 320 channels, instance norms. Its loss of Dice and cross-entropy counts as a
/// cross-entropy. nnU-Net [Isensee 2021, Nature Methods 18, 203] plans the same network for the
/// brain tumours of the Medical Segmentation Decathlon, four channels and four classes
/// (NVIDIA/DeepLearningExamples:PyTorch/Segmentation/nnUNet, task 01);
/// TensorFlow/Segmentation/UNet_3D_Medical there trains it on BraTS, its last kernel 3^3.
struct Unet3dShape {
  std::int64_t channels = 1, classes = 3;
  std::int64_t last_kernel = 1;
};
Expected<ModelGraph> make_unet3d(std::string name, const Unet3dShape& shape);

/// nnU-Net's two-dimensional network of the same task: slices of 192 x 160, 32 to 512 channels
/// (TensorFlow2/Segmentation/nnUNet/models/unet.py there). Leaky ReLUs count as ReLUs.
Expected<ModelGraph> make_nnunet_2d();

/// V-Net [Milletari 2016, arXiv:1606.04797] as
/// NVIDIA/DeepLearningExamples:TensorFlow/Segmentation/VNet builds it, with 3^3 kernels on volumes
/// of 32^3, three times down, for the hippocampus: one channel, three classes.
Expected<ModelGraph> make_vnet();

}  // namespace reckon
