// Included by one .cpp for each instruction set, which names RECKON_ISA. Not a header of its own:
// the macro gives Eigen a namespace for each set, else the linker would keep one of the three
// versions of every template and run it on machines that cannot.
#define RECKON_PASTE2(a, b) a##b
#define RECKON_PASTE(a, b) RECKON_PASTE2(a, b)
#define Eigen RECKON_PASTE(Eigen_, RECKON_ISA)
#define EIGEN_DONT_PARALLELIZE  // Workers split the products
#include <Eigen/Core>

#include "executor/train/products/matrix_table.h"

namespace reckon::matrix {
namespace {

template <class T>
using RowMajor = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Stride = Eigen::OuterStride<>;
template <class T>
using In = Eigen::Map<const RowMajor<T>, 0, Stride>;

template <class T, class A, class B>
void assign(const A& a, const B& b, ProductSize size, T* c, std::int64_t c_stride,
            bool accumulate) {
  Eigen::Map<RowMajor<T>, 0, Stride> out(c, size.m, size.n, Stride(c_stride));
  if (accumulate)
    out.noalias() += a * b;
  else
    out.noalias() = a * b;
}

template <class T>
void product(ProductSize size, MatrixView<T> a, MatrixView<T> b, T* c, std::int64_t c_stride,
             bool accumulate) {
  const auto [m, n, k] = size;
  const In<T> a_memory(a.data, a.transposed ? k : m, a.transposed ? m : k, Stride(a.stride));
  const In<T> b_memory(b.data, b.transposed ? n : k, b.transposed ? k : n, Stride(b.stride));
  if (a.transposed && b.transposed)
    assign<T>(a_memory.transpose(), b_memory.transpose(), size, c, c_stride, accumulate);
  else if (a.transposed)
    assign<T>(a_memory.transpose(), b_memory, size, c, c_stride, accumulate);
  else if (b.transposed)
    assign<T>(a_memory, b_memory.transpose(), size, c, c_stride, accumulate);
  else
    assign<T>(a_memory, b_memory, size, c, c_stride, accumulate);
}

}  // namespace

// Each source that includes this names its own instruction set.
// NOLINTBEGIN(misc-definitions-in-headers)
const Product<float> RECKON_PASTE(float_, RECKON_ISA) = &product<float>;
const Product<double> RECKON_PASTE(double_, RECKON_ISA) = &product<double>;
// NOLINTEND(misc-definitions-in-headers)

}  // namespace reckon::matrix
