#pragma once
#include "executor/train/products/matrix.h"

// The products of each instruction set, by the name of the source that makes them.
namespace reckon::matrix {

template <class T>
using Product = void (*)(ProductSize, MatrixView<T>, MatrixView<T>, T*, std::int64_t, bool);

extern const Product<float> float_baseline, float_avx2, float_avx512;
extern const Product<double> double_baseline, double_avx2, double_avx512;

}  // namespace reckon::matrix
