#include "sim/catalog/precision.h"

namespace reckon {

Bytes bytes_per_element(Precision p) {
  switch (p) {
    case Precision::fp32:
    case Precision::tf32:
      return Bytes{4};
    case Precision::fp16:
    case Precision::bf16:
      return Bytes{2};
    case Precision::fp8:
    case Precision::mxfp8:
      return Bytes{1};
    case Precision::nvfp4:
      return Bytes{0.5};
  }
  RECKON_CHECK(false);
  return {};
}

}  // namespace reckon
